//! Views of buffers, and the elements that an access through a view names and touches.

use oxisycl::prelude::*;

use crate::support::Random;

/// A box of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) offset: [usize; 3],
    pub(crate) range: [usize; 3],
}

impl Part {
    pub(crate) fn size(&self) -> usize {
        self.range.iter().product()
    }

    /// The positions of its elements in an array of that extent, in row-major order.
    pub(crate) fn positions(&self, extent: [usize; 3]) -> Vec<usize> {
        let mut positions = Vec::with_capacity(self.size());
        for z in self.offset[0]..self.offset[0] + self.range[0] {
            for y in self.offset[1]..self.offset[1] + self.range[1] {
                for x in self.offset[2]..self.offset[2] + self.range[2] {
                    positions.push((z * extent[1] + y) * extent[2] + x);
                }
            }
        }
        positions
    }
}

/// A buffer, a sub-buffer or a reinterpretation, and where its elements are in the buffer.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) buffer: usize,
    pub(crate) handle: Buffer<u32, 3>,
    pub(crate) extent: [usize; 3],
    /// The position of its first element in the buffer; the others follow.
    pub(crate) first: usize,
    /// Elements that an access may touch as far as pages go, beyond those that it names.
    pub(crate) pages: Pages,
}

/// What belongs to an access beside the elements it names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pages {
    /// Boxes of this size.
    Of([usize; 3]),
    /// The view is one page.
    View,
    /// Any element of the buffer: a reinterpretation has no boxes of its own.
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Access {
    Read,
    ReadWrite,
    Write,
    Discard,
}

/// One use of a buffer by a command, in positions of the buffer.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) buffer: usize,
    pub(crate) named: Vec<usize>,
    /// All elements of the pages that `named` may touch.
    pub(crate) touched: Vec<usize>,
    pub(crate) access: Access,
}

impl View {
    pub(crate) fn part(&self, random: &mut Random) -> Part {
        let intervals = self.extent.map(|extent| random.interval(extent));
        Part { offset: intervals.map(|(begin, _)| begin), range: intervals.map(|(_, length)| length) }
    }

    pub(crate) fn whole(&self) -> Part {
        Part { offset: [0; 3], range: self.extent }
    }

    pub(crate) fn use_of(&self, part: Part, access: Access, extent: [usize; 3]) -> Use {
        let named: Vec<usize> = part.positions(self.extent).into_iter().map(|i| i + self.first).collect();
        let all = 0..extent.iter().product();
        let touched = match self.pages {
            Pages::Unknown => all.collect(),
            Pages::View => (self.first..self.first + self.whole().size()).collect(),
            Pages::Of(page) => {
                let page_of = |i: usize| {
                    let at = [i / (extent[1] * extent[2]), i / extent[2] % extent[1], i % extent[2]];
                    [0, 1, 2].map(|d| at[d] / page[d])
                };
                let pages: Vec<_> = named.iter().map(|&i| page_of(i)).collect();
                all.filter(|&i| pages.contains(&page_of(i))).collect()
            }
        };
        Use { buffer: self.buffer, named, touched, access }
    }
}

/// The begin of a part with at most that many elements.
pub(crate) fn cut(part: Part, most: usize) -> Part {
    let mut range = part.range;
    for d in 0..3 {
        while range.iter().product::<usize>() > most && range[d] > 1 {
            range[d] -= 1;
        }
    }
    Part { range, ..part }
}

/// Whether two uses name a common element, one of them writing.
pub(crate) fn overlap(uses: &[Use]) -> bool {
    let Some((last, others)) = uses.split_last() else { return false };
    others.iter().any(|other| {
        other.buffer == last.buffer
            && (last.access != Access::Read || other.access != Access::Read)
            && other.named.iter().any(|i| last.named.contains(i))
    })
}
