//! A device image in memory, and the rules that every image obeys.

use std::collections::{HashMap, HashSet};

use crate::specialized::SpecializedPlaces;
use crate::{Argument, Form, GroupNeeds, ImageError, ImageTarget, PanicSite, ParameterLayout, SpecializedLoad};

/// Compiled kernels of one link unit for one target, with what the runtime has to know to launch them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceImage {
    /// What the code was compiled for.
    pub target: ImageTarget,
    /// The kernels in the code. No two have the same symbol, or the same type and form.
    pub kernels: Vec<KernelEntry>,
    /// How the code was made, as words `name=value` with a space between two: the compiler and its version, the processor, the
    /// floating-point policy. Empty if that is not known.
    pub build_options: String,
    /// Kernels of the link unit that the target cannot run. None of them is among `kernels`.
    pub unsupported: Vec<UnsupportedKernel>,
    /// Where kernels of the image can panic or print; the device tells a position in this list.
    pub sites: Vec<PanicSite>,
    /// The code, in the target's own format. For a host, whose code is linked into the program, which function it is: see
    /// [`native_index`](Self::native_index).
    pub code: Vec<u8>,
}

/// One kernel of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelEntry {
    /// The kernel's name in the code; not empty, without NUL bytes.
    pub symbol: String,
    /// The bytes of the `TypeId` of the kernel's type.
    pub type_id: [u8; 16],
    /// How it is launched.
    pub form: Form,
    /// The argument block, as the device sees it.
    pub parameters: ParameterLayout,
    /// The compiler's name of the kernel's type, to be compared with the host's and for messages.
    pub type_name: String,
    /// Where its code is in the user's source, for messages; without a file if that is not known.
    pub location: SourceLocation,
    /// Where the user launches it, to be compared with the host's, if that is one place and known.
    pub launch: Option<SourceLocation>,
    /// Names of the aspects that a device must have to run it, such as `fp64`; in the order of the compiler.
    pub requirements: Vec<String>,
    /// The requirements that its attribute states, in the order of the specification.
    pub aspects: Vec<String>,
    /// If it states some, what the code needs beside these, as warnings.
    pub unstated: Vec<String>,
    /// Functions of the device library and of the standard library that were linked to the kernel's own code, in the compiler's order.
    /// Examples: `sinf` and `core::str::converts::from_utf8`. What these need in turn is not named.
    pub library: Vec<String>,
    /// What the argument block consists of, in the order of declaration. Empty if the kernel has no arguments beside its captures.
    pub arguments: Vec<Argument>,
    /// The loads of its code that a variant for known values does without, in the order of their places.
    pub specialized: Vec<SpecializedLoad>,
    /// Whether it can write a panic record.
    pub may_panic: bool,
    /// Whether it can print, and so needs a print buffer.
    pub may_print: bool,
    /// Whether each position of the grid runs two work-items. Position `p` of a group of `n` positions runs the items at `p` and `p + n` of
    /// the group's `2 n` items. Only in kernels over one dimension.
    pub is_paired: bool,
    /// Whether its calls are recursive or go through pointers, so that it is unknown how much stack a work-item takes.
    pub has_unbounded_stack: bool,
    /// What it asks of work-groups.
    pub groups: GroupNeeds,
}

impl KernelEntry {
    /// A kernel without a known place, which needs nothing of its device and does nothing that is said of it.
    pub fn new(
        symbol: impl Into<String>,
        type_id: [u8; 16],
        form: Form,
        parameters: ParameterLayout,
        type_name: impl Into<String>,
    ) -> Self {
        Self {
            symbol: symbol.into(),
            type_id,
            form,
            parameters,
            type_name: type_name.into(),
            location: SourceLocation { file: String::new(), line: 1, column: 1 },
            launch: None,
            requirements: Vec::new(),
            aspects: Vec::new(),
            unstated: Vec::new(),
            library: Vec::new(),
            arguments: Vec::new(),
            specialized: Vec::new(),
            may_panic: false,
            may_print: false,
            is_paired: false,
            has_unbounded_stack: false,
            groups: GroupNeeds::default(),
        }
    }
}

/// A kernel that a target cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnsupportedKernel {
    /// The bytes of the `TypeId` of the kernel's type.
    pub type_id: [u8; 16],
    /// How it is launched.
    pub form: Form,
    /// The compiler's name of the kernel's type.
    pub type_name: String,
    /// Why, as the build warned.
    pub reason: String,
}

/// A place in the user's source, as `core::panic::Location` reports it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SourceLocation {
    /// The file, as the compiler was given it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl DeviceImage {
    /// Checks the rules that every encoded image obeys.
    ///
    /// # Errors
    /// The first rule that is broken: a target whose text reads as another target, or a kernel with an invalid form, symbol or argument
    /// block. Two kernels must not share a symbol, nor their type and form.
    pub fn verify(&self) -> Result<(), ImageError> {
        let target: ImageTarget = self.target.to_string().parse()?;
        if target != self.target {
            return Err(ImageError::AmbiguousTarget { target: self.target.clone(), reads_as: target });
        }
        let mut symbols = HashSet::new();
        let mut kernels = HashMap::new();
        let places = SpecializedPlaces::of(self);
        for kernel in &self.kernels {
            kernel.verify()?;
            if let Some(load) = kernel.wrong_load(&places) {
                return Err(ImageError::Specialized { symbol: kernel.symbol.clone(), load });
            }
            if !symbols.insert(kernel.symbol.as_str()) {
                return Err(ImageError::DuplicateSymbol { symbol: kernel.symbol.clone() });
            }
            if let Some(first) = kernels.insert((kernel.type_id, kernel.form), &kernel.symbol) {
                return Err(ImageError::DuplicateKernel { first: first.clone(), second: kernel.symbol.clone() });
            }
        }
        for kernel in &self.unsupported {
            check_form(kernel.form, &kernel.type_name)?;
            if let Some(first) = kernels.insert((kernel.type_id, kernel.form), &kernel.type_name) {
                return Err(ImageError::DuplicateKernel { first: first.clone(), second: kernel.type_name.clone() });
            }
        }
        Ok(())
    }

    /// The `code` of a host's image of one kernel: 4 bytes with the place of the kernel's function in a table. The table of native entries
    /// is registered with the bundle.
    pub fn native_code(index: u32) -> Vec<u8> {
        index.to_le_bytes().to_vec()
    }

    /// The place in the table of native entries, from [`native_code`](Self::native_code). `None` if the image is not of a host, has
    /// another number of kernels than one, or its code is not 4 bytes.
    pub fn native_index(&self) -> Option<u32> {
        let bytes: [u8; 4] = self.code.as_slice().try_into().ok()?;
        let is_of_host = matches!(self.target, ImageTarget::Host { .. });
        (is_of_host && self.kernels.len() == 1).then_some(u32::from_le_bytes(bytes))
    }

    /// What is known of a panic site that a device recorded; `None` if there is no such site.
    pub fn site(&self, index: u32) -> Option<&PanicSite> {
        self.sites.get(usize::try_from(index).ok()?)
    }
}

impl KernelEntry {
    fn verify(&self) -> Result<(), ImageError> {
        if self.symbol.is_empty() || self.symbol.contains('\0') {
            return Err(ImageError::Symbol { symbol: self.symbol.clone() });
        }
        check_form(self.form, &self.symbol)?;
        self.check_groups()?;
        if let Some(aspect) = self.aspects.iter().find(|aspect| !self.requirements.contains(aspect)) {
            return Err(ImageError::Aspect { symbol: self.symbol.clone(), aspect: aspect.clone() });
        }
        // The size and alignment of a Rust type: the size is a multiple of the alignment and fits in `isize`.
        let ParameterLayout { size, align } = self.parameters;
        if !align.is_power_of_two() || !size.is_multiple_of(align) || isize::try_from(size).is_err() {
            return Err(ImageError::Parameters { symbol: self.symbol.clone(), parameters: self.parameters });
        }
        let is_inside = |argument: &&Argument| {
            argument.size > 0 && argument.offset.checked_add(argument.size).is_some_and(|end| end <= size)
        };
        if let Some(argument) = self.arguments.iter().find(|argument| !is_inside(argument)) {
            let (symbol, argument) = (self.symbol.clone(), argument.clone());
            return Err(ImageError::Argument { symbol, argument, size });
        }
        if self.arguments.len() > Argument::MAX_LISTED {
            let (expected, found) = (Argument::MAX_LISTED, self.arguments.len());
            return Err(ImageError::TooLarge { part: "arguments", expected, found });
        }
        Ok(())
    }
}

impl KernelEntry {
    /// A fixed group has a size that a device may have, and none along axes that a range does not have. A single task has none. Only kernels over
    /// groups have memory of groups.
    fn check_groups(&self) -> Result<(), ImageError> {
        let GroupNeeds { local, sub_group, has_barriers, static_local_bytes, .. } = self.groups;
        let items = local.iter().try_fold(1u32, |items, n| items.checked_mul(*n));
        let is_none = local == [0; 3];
        let is_one = items.is_some_and(|items| (1..=GroupNeeds::MAX_ITEMS).contains(&items));
        let is_size = (is_none || is_one) && (sub_group == 0 || sub_group.is_power_of_two());
        let is_stated =
            self.groups == GroupNeeds { local, sub_group, has_barriers, static_local_bytes, ..GroupNeeds::default() };
        let fits = match self.form {
            Form::Group(_) => is_size,
            Form::Range(dimensions) => {
                let unused = local.iter().take(3 - usize::from(dimensions.min(3)));
                is_size && is_stated && (is_none || !self.is_paired && unused.copied().all(|extent| extent == 1))
            }
            Form::Single => is_size && is_stated && is_none,
        };
        if fits { Ok(()) } else { Err(ImageError::Groups { symbol: self.symbol.clone(), groups: self.groups }) }
    }
}

fn check_form(form: Form, kernel: &str) -> Result<(), ImageError> {
    match form {
        Form::Single | Form::Range(1..=3) | Form::Group(1..=3) => Ok(()),
        Form::Range(dimensions) | Form::Group(dimensions) => {
            Err(ImageError::Dimensions { symbol: kernel.to_owned(), dimensions })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;

    fn image(change: impl FnOnce(&mut DeviceImage)) -> DeviceImage {
        let kernel = |symbol: &str, form| KernelEntry {
            location: SourceLocation { file: "src/main.rs".to_owned(), line: 1, column: 2 },
            ..KernelEntry::new(symbol, [7; 16], form, ParameterLayout { size: 8, align: 8 }, "app::Kernel")
        };
        let mut image = DeviceImage {
            target: ImageTarget::Ptx { sm: 70 },
            kernels: vec![kernel("first", Form::Single), kernel("second", Form::Range(3))],
            build_options: String::new(),
            unsupported: Vec::new(),
            sites: Vec::new(),
            code: Vec::new(),
        };
        change(&mut image);
        image
    }

    #[test]
    fn the_image_of_a_host_has_the_place_of_its_function() {
        let host = |triple: &str| ImageTarget::Host { triple: triple.to_owned(), level: None };
        let of = |change: &dyn Fn(&mut DeviceImage)| {
            image(|image| {
                image.target = host("x86_64-unknown-linux-gnu");
                image.kernels.truncate(1);
                image.code = DeviceImage::native_code(0x0102_0304);
                change(image);
            })
            .native_index()
        };
        assert_eq!(DeviceImage::native_code(0x0102_0304), [4, 3, 2, 1]);
        assert_eq!(of(&|_| {}), Some(0x0102_0304));
        assert_eq!(of(&|image| image.code.truncate(3)), None);
        assert_eq!(of(&|image| image.code.push(0)), None);
        assert_eq!(of(&|image| image.kernels.clear()), None);
        assert_eq!(of(&|image| image.kernels.push(image.kernels[0].clone())), None);
        assert_eq!(of(&|image| image.target = ImageTarget::Ptx { sm: 70 }), None);
    }

    #[test]
    fn one_type_in_several_forms_is_several_kernels() {
        assert_eq!(image(|_| {}).verify(), Ok(()));
    }

    #[test]
    fn a_kernel_that_captures_nothing_has_an_empty_argument_block() {
        assert_eq!(image(|image| image.kernels[0].parameters = ParameterLayout { size: 0, align: 1 }).verify(), Ok(()));
    }

    #[test]
    fn kernels_that_could_be_taken_for_each_other_are_refused() {
        let image = image(|image| image.kernels[1].form = Form::Single);
        let error = ImageError::DuplicateKernel { first: "first".to_owned(), second: "second".to_owned() };
        assert_eq!(image.verify(), Err(error.clone()));
        assert_eq!(encode(&image), Err(error.clone()));
        assert_eq!(
            error.to_string(),
            "device image: kernel \"second\": expected a type and form of its own, found those of kernel \"first\""
        );
    }

    #[test]
    fn a_kernel_is_either_supported_or_not() {
        let unsupported = |type_id, form| UnsupportedKernel {
            type_id: [type_id; 16],
            form,
            type_name: "app::Other".to_owned(),
            reason: "it reads a file".to_owned(),
        };
        let with = |kernels: Vec<UnsupportedKernel>| image(|image| image.unsupported = kernels).verify();
        assert_eq!(with(vec![unsupported(7, Form::Range(1)), unsupported(8, Form::Range(1))]), Ok(()));
        let error = |first: &str| {
            let (first, second) = (first.to_owned(), "app::Other".to_owned());
            Err(ImageError::DuplicateKernel { first, second })
        };
        assert_eq!(with(vec![unsupported(7, Form::Single)]), error("first"));
        assert_eq!(with(vec![unsupported(8, Form::Single), unsupported(8, Form::Single)]), error("app::Other"));
        let dimensions = ImageError::Dimensions { symbol: "app::Other".to_owned(), dimensions: 4 };
        assert_eq!(with(vec![unsupported(8, Form::Range(4))]), Err(dimensions));
    }

    #[test]
    fn symbols_are_unique_names() {
        let same = image(|image| image.kernels[1].symbol = "first".to_owned());
        assert_eq!(same.verify(), Err(ImageError::DuplicateSymbol { symbol: "first".to_owned() }));
        let empty = image(|image| image.kernels[1].symbol.clear());
        assert_eq!(empty.verify(), Err(ImageError::Symbol { symbol: String::new() }));
    }

    #[test]
    fn argument_blocks_have_the_layout_of_a_type() {
        for (size, align) in [(8, 0), (12, 3), (12, 8), (usize::MAX - 7, 8)] {
            let parameters = ParameterLayout { size, align };
            let error = image(|image| image.kernels[0].parameters = parameters).verify().unwrap_err();
            assert_eq!(error, ImageError::Parameters { symbol: "first".to_owned(), parameters });
        }
    }

    #[test]
    fn arguments_lie_inside_the_block() {
        let argument = |offset, size| Argument { path: "1.x".to_owned(), type_name: "f32".to_owned(), offset, size };
        let with = |argument| image(|image| image.kernels[0].arguments = vec![argument]).verify();
        assert_eq!(with(argument(4, 4)), Ok(()));
        for (offset, size) in [(4, 5), (8, 1), (0, 0), (usize::MAX, 2)] {
            let (symbol, found) = ("first".to_owned(), argument(offset, size));
            assert_eq!(with(found.clone()), Err(ImageError::Argument { symbol, argument: found, size: 8 }));
        }
    }

    #[test]
    fn what_is_stated_is_needed_and_fits_the_form() {
        let with = |position: usize, change: &dyn Fn(&mut KernelEntry)| {
            image(|image| change(&mut image.kernels[position])).verify()
        };
        let aspect = with(0, &|kernel| kernel.aspects = vec!["fp64".to_owned()]);
        let error = ImageError::Aspect { symbol: "first".to_owned(), aspect: "fp64".to_owned() };
        assert_eq!(aspect, Err(error.clone()));
        assert_eq!(
            error.to_string(),
            "device image: kernel \"first\": expected each stated aspect among its requirements, found fp64"
        );
        let both = |kernel: &mut KernelEntry| {
            kernel.requirements = vec!["fp16".to_owned(), "fp64".to_owned()];
            kernel.aspects = vec!["fp64".to_owned()];
        };
        assert_eq!(with(0, &both), Ok(()));
        let groups = |position: usize, form: Form, is_paired: bool, local: [u32; 3], sub_group: u32| {
            let change = |kernel: &mut KernelEntry| {
                (kernel.form, kernel.is_paired) = (form, is_paired);
                kernel.groups = GroupNeeds { local, sub_group, ..GroupNeeds::default() };
            };
            with(position, &change).is_ok()
        };
        // The first is a single task, the second one over a range.
        let (line, plane) = (Form::Range(1), Form::Range(2));
        assert!(groups(0, Form::Single, false, [0; 3], 32) && !groups(0, Form::Single, false, [1; 3], 0));
        assert!(groups(1, line, false, [1, 1, 64], 32) && !groups(1, line, true, [1, 1, 64], 0));
        assert!(!groups(1, line, false, [1, 2, 64], 0) && groups(1, plane, false, [1, 2, 64], 0));
        assert!(!groups(1, plane, false, [2, 2, 64], 0) && !groups(1, plane, false, [1, 0, 64], 0));
        assert!(!groups(1, plane, false, [1, 1 << 9, 1 << 9], 0) && !groups(1, plane, false, [0; 3], 24));
    }

    #[test]
    fn targets_have_a_text_that_means_them() {
        let unknown = image(|image| image.target = ImageTarget::Host { triple: String::new(), level: None });
        assert!(matches!(unknown.verify(), Err(ImageError::Target(_))));
        let ambiguous = image(|image| image.target = ImageTarget::AmdGcn { arch: "sm_90".to_owned() });
        assert!(matches!(ambiguous.verify(), Err(ImageError::AmbiguousTarget { .. })));
    }
}
