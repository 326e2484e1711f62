//! The naive model of one buffer or image: of every element the value, who used it, and where its newest bytes are.

use std::collections::BTreeSet;

use super::{Access, HOST, Part, Spec};

/// The commands that use an element.
#[derive(Clone, Default)]
struct Users {
    writer: Option<usize>,
    /// Who wrote to other elements of the page only.
    neighbour: Option<usize>,
    readers: BTreeSet<usize>,
}

pub(crate) struct Model {
    pub(crate) spec: Spec,
    pub(crate) values: Vec<u32>,
    /// Per element, whether its value is known: somebody wrote it.
    pub(crate) known: Vec<bool>,
    /// Per element, the memories with its newest value; none if nobody ever wrote it.
    current: Vec<BTreeSet<usize>>,
    users: Vec<Users>,
}

impl Model {
    pub(crate) fn new(spec: &Spec) -> Self {
        let n = spec.extent[0] * spec.extent[1];
        let current = vec![if spec.is_initialized { BTreeSet::from([HOST]) } else { BTreeSet::new() }; n];
        Self {
            spec: spec.clone(),
            values: if spec.is_initialized { spec.first_values() } else { vec![0; n] },
            known: vec![spec.is_initialized; n],
            current,
            users: vec![Users::default(); n],
        }
    }

    /// All elements.
    pub(crate) fn whole(&self) -> Part {
        Part { begin: [0, 0], extent: self.spec.extent }
    }

    fn page_size(&self) -> [usize; 2] {
        self.spec.page.unwrap_or(self.spec.extent)
    }

    /// `part` cut to the extent.
    pub(crate) fn cut(&self, part: Part) -> Part {
        let begin = [0, 1].map(|d| part.begin[d].min(self.spec.extent[d] - 1));
        let extent = [0, 1].map(|d| part.extent[d].min(self.spec.extent[d] - begin[d]));
        Part { begin, extent }
    }

    /// What an accessor for `part` names: accessors of images are for all pixels.
    pub(crate) fn named(&self, part: Part) -> Part {
        if self.spec.is_image() { self.whole() } else { self.cut(part) }
    }

    pub(crate) fn elements(&self, part: Part) -> Vec<usize> {
        let columns = self.spec.extent[1];
        let rows = part.begin[0]..part.begin[0] + part.extent[0];
        rows.flat_map(|y| (part.begin[1]..part.begin[1] + part.extent[1]).map(move |x| y * columns + x)).collect()
    }

    fn page_of(&self, element: usize) -> usize {
        let page = self.page_size();
        let n_columns = self.spec.extent[1].div_ceil(page[1]);
        let (y, x) = (element / self.spec.extent[1], element % self.spec.extent[1]);
        (y / page[0]) * n_columns + x / page[1]
    }

    fn pages_of(&self, part: Part) -> BTreeSet<usize> {
        self.elements(part).into_iter().map(|element| self.page_of(element)).collect()
    }

    /// Applies an access of command `id` in `memory`. Returns the commands it depends on and the number of elements it moves.
    pub(crate) fn access(&mut self, id: usize, memory: usize, part: Part, access: Access) -> (BTreeSet<usize>, usize) {
        let mut dependencies = BTreeSet::new();
        let mut moved = 0;
        let pages = self.pages_of(part);
        let writes = access != Access::Read;
        let named: BTreeSet<usize> = self.elements(part).into_iter().collect();
        for element in 0..self.values.len() {
            if !pages.contains(&self.page_of(element)) {
                continue;
            }
            let users = &mut self.users[element];
            dependencies.extend(users.writer.into_iter().chain(users.neighbour));
            if !writes {
                if users.writer != Some(id) {
                    users.readers.insert(id);
                }
            } else {
                dependencies.append(&mut users.readers);
                if access == Access::Discard && !named.contains(&element) {
                    users.neighbour = Some(id);
                } else {
                    (users.writer, users.neighbour) = (Some(id), None);
                }
            }
            if access == Access::Discard {
                if named.contains(&element) {
                    self.current[element] = BTreeSet::from([memory]);
                }
                continue;
            }
            let current = &mut self.current[element];
            if !current.is_empty() && current.insert(memory) {
                moved += 1;
            }
            if writes {
                *current = BTreeSet::from([memory]);
            }
        }
        dependencies.remove(&id);
        (dependencies, moved)
    }

    /// What kernel `id` does to the elements of `part`.
    pub(crate) fn apply(&mut self, id: usize, part: Part, access: Access) {
        for element in self.elements(part) {
            match access {
                Access::Read => {}
                Access::Update => {
                    self.values[element] = self.values[element].wrapping_mul(31).wrapping_add(id as u32);
                }
                Access::Write | Access::Discard => self.set(element, id as u32 * 1000 + element as u32, true),
            }
        }
    }

    pub(crate) fn set(&mut self, element: usize, value: u32, is_known: bool) {
        self.values[element] = value;
        self.known[element] = is_known;
    }

    /// Gives the elements of `to` what `source` has at `from`, in their order.
    pub(crate) fn take(&mut self, to: Part, source: &[(u32, bool)]) {
        for (element, &(value, is_known)) in self.elements(to).into_iter().zip(source) {
            self.set(element, value, is_known);
        }
    }

    /// The values of a part, and whether they are known.
    pub(crate) fn content(&self, part: Part) -> Vec<(u32, bool)> {
        self.elements(part).into_iter().map(|element| (self.values[element], self.known[element])).collect()
    }
}
