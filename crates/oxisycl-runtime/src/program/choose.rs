//! Which image of a kernel a device gets, or why none.
//!
//! The rules, in this order. If the link unit that holds the program's half of the kernel has images of it, only those
//! count. Otherwise those of all link units count. An image counts if its target is one that the device takes. For PTX
//! and SPIR-V a lower version counts, too, and for hosts a lower level. The first target of the device's list wins, then the highest version, then the
//! order in the bundle. An image whose kernel needs an aspect that the device lacks, or states sizes that it does not have, is passed over
//! for the next. If
//! images of several link units are equally good and differ, that is an error, since no rule can tell which is meant.
//!
//! Two libraries that contain the same crate have kernels of equal identity, whose images may differ by build settings. That is why the
//! kernel's own link unit comes first.
//!
//! Invariant: each error names the kernel, the device, what is wrong and what helps.

use std::panic::Location;
use std::sync::Arc;

use oxisycl_backend::Device;
use oxisycl_image::{
    Argument, Form, GroupNeeds, HostLevel, ImageError, ImageTarget, KernelEntry, ParameterLayout, SourceLocation,
    StatedNeeds,
};
use oxisycl_types::{ArgumentType, Aspect, ErrorCode};

use super::KernelKey;
use super::index::{Candidate, Entry, Image, Index, Unit};
use crate::plug_ins::link_unit::LinkUnit;
use crate::{Error, Result};

/// What is looked for.
pub(super) struct Query<'a> {
    /// The kernel's name in messages.
    pub(super) name: &'a str,
    pub(super) key: KernelKey,
    /// What the image must agree with.
    pub(super) host: Option<HostSide<'a>>,
    /// Where the program's half of the kernel lies, if that is known.
    pub(super) unit: Option<LinkUnit>,
}

/// The program's half of a kernel.
#[derive(Clone, Copy)]
pub(super) struct HostSide<'a> {
    pub(super) layout: ParameterLayout,
    pub(super) type_name: &'a str,
    /// What its block consists of, if it has arguments beside its captures.
    pub(super) arguments: Option<&'static ArgumentType>,
    /// What its attribute states.
    pub(super) stated: StatedNeeds,
    /// Where it is launched, if that is in the link unit that holds the kernel's native code.
    pub(super) location: Option<&'static Location<'static>>,
}

/// The kernel at a position of an image.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) image: Arc<Image>,
    pub(super) kernel: usize,
    /// The link unit that has the image, and the number of its bundle.
    pub(super) unit: Option<LinkUnit>,
    pub(super) number: u64,
}

/// How well an image suits a device: the less the better.
pub(super) type Rank = (usize, u32);

/// How well code for `image` suits a device that takes `targets`; `None` if it does not run there.
pub(super) fn fit(image: &ImageTarget, targets: &[ImageTarget]) -> Option<Rank> {
    targets.iter().enumerate().find_map(|(position, target)| {
        let distance = match (image, target) {
            (ImageTarget::Ptx { sm: has }, ImageTarget::Ptx { sm: takes }) => takes.checked_sub(*has)?,
            (ImageTarget::SpirV { major, minor }, ImageTarget::SpirV { major: takes_major, minor: takes_minor })
                if major == takes_major =>
            {
                takes_minor.checked_sub(*minor)?
            }
            (
                ImageTarget::Host { triple: of, level: has },
                ImageTarget::Host { triple: takes_triple, level: takes },
            ) if of == takes_triple => number(*takes).checked_sub(number(*has))?,
            (image, target) if image == target => 0,
            _ => return None,
        };
        Some((position, distance))
    })
}

/// Orders levels of hosts. Code that asks for none is below all of them.
fn number(level: Option<HostLevel>) -> u32 {
    level.map_or(0, HostLevel::number)
}

/// The image that `device` gets.
pub(super) fn choose(index: &Index, device: &dyn Device, query: &Query<'_>) -> Result<Choice> {
    let all = index.candidates(&query.key);
    let own: Vec<&Candidate> = all.iter().filter(|c| query.unit.is_some() && c.unit == query.unit).collect();
    let is_own = !own.is_empty();
    let mut candidates = if is_own { own } else { all.iter().collect() };
    if candidates.is_empty() {
        return Err(no_image(index, device, query));
    }
    // An image of another link unit may be of another kernel, but one of the kernel's own has to be right.
    let mismatch = candidates.iter().find_map(|candidate| self::mismatch(candidate, device, query));
    candidates.retain(|candidate| self::mismatch(candidate, device, query).is_none());
    if let Some(mismatch) = mismatch
        && (is_own || candidates.is_empty())
    {
        return Err(mismatch);
    }
    let targets = &device.info().image_targets;
    let mut fitting: Vec<(Rank, &Candidate)> =
        candidates.iter().filter_map(|c| Some((fit(&c.image.image.target, targets)?, *c))).collect();
    fitting.sort_by_key(|(rank, _)| *rank);
    let runs = |candidate: &Candidate| match candidate.entry {
        Entry::Kernel(kernel) => {
            let entry = &candidate.image.image.kernels[kernel];
            (missing(entry, device).is_empty() && device.info().lacks(&sizes(entry)).is_none()).then_some(kernel)
        }
        Entry::Unsupported(_) => None,
    };
    let mut usable = fitting.iter().filter_map(|(rank, c)| Some((*rank, *c, runs(c)?)));
    let Some((best_rank, best, kernel)) = usable.next() else {
        return Err(unusable(&candidates, &fitting, device, query));
    };
    let is_rival = |(rank, other, _): &(Rank, &Candidate, usize)| {
        *rank == best_rank && other.bundle != best.bundle && !Arc::ptr_eq(&other.image, &best.image)
    };
    match usable.find(is_rival) {
        // A query gets the first.
        Some((_, other, _)) if !is_own && query.host.is_some() => Err(ambiguous(index, best, other, device, query)),
        _ => Ok(Choice { image: best.image.clone(), kernel, unit: best.unit, number: best.bundle }),
    }
}

/// Names of aspects that a kernel needs and the device lacks. A name that is no aspect is one that no device has.
pub(super) fn missing<'a>(kernel: &'a KernelEntry, device: &dyn Device) -> Vec<&'a str> {
    let is_missing = |name: &&str| !known_aspect(name).is_some_and(|aspect| device.info().has(aspect));
    kernel.requirements.iter().map(String::as_str).filter(is_missing).collect()
}

/// The sizes that a kernel states. Those of a kernel over groups are the launch's own, which is checked.
fn sizes(kernel: &KernelEntry) -> StatedNeeds {
    match kernel.form {
        Form::Group(_) => StatedNeeds::NONE,
        _ => StatedNeeds { group: kernel.groups.local, sub_group: kernel.groups.sub_group, ..StatedNeeds::NONE },
    }
}

fn known_aspect(name: &str) -> Option<Aspect> {
    Aspect::ALL.iter().find(|aspect| aspect.name() == name).copied()
}

/// The first argument of which image and program disagree, in the words of a message. Both lists are in the order of declaration.
fn argument_mismatch(image: &[Argument], program: &[Argument]) -> Option<String> {
    let both = image.len().max(program.len());
    let at = (0..both).find(|at| match (image.get(*at), program.get(*at)) {
        (Some(image), Some(program)) => !image.is_at_place_of(program),
        _ => true,
    })?;
    let name = |argument: Option<&Argument>| argument.map_or("none".to_owned(), |argument| format!("`{argument}`"));
    let (image, program) = (name(image.get(at)), name(program.get(at)));
    Some(format!("its argument number {at} is {image} in the image, but {program} in the program"))
}

/// In what an image disagrees with the program (rule 8 of kernel identity).
pub(super) fn mismatch(candidate: &Candidate, device: &dyn Device, query: &Query<'_>) -> Option<Error> {
    let host = query.host?;
    let Entry::Kernel(position) = candidate.entry else { return None };
    let image = &candidate.image.image;
    let kernel = &image.kernels[position];
    let target = &image.target;
    let ParameterLayout { size, align } = kernel.parameters;
    let ParameterLayout { size: host_size, align: host_align } = host.layout;
    if (size, align) != (host_size, host_align) {
        let why = format!(
            "its captures are {size} bytes with alignment {align} in the image, but {host_size} bytes with alignment {host_align} \
             in the program (image target: {target}); build both anew with `cargo sycl build`"
        );
        return Some(error(ErrorCode::KernelArgument, query, device, &why));
    }
    let arguments = host.arguments.map(Argument::list).unwrap_or_default();
    if let Some(why) = argument_mismatch(&kernel.arguments, &arguments) {
        let why = format!("{why} (image target: {target}); build both anew with `cargo sycl build`");
        return Some(error(ErrorCode::KernelArgument, query, device, &why));
    }
    let is_stated = host.stated.aspects.iter().map(Aspect::name).eq(kernel.aspects.iter().map(String::as_str))
        && sizes(kernel) == StatedNeeds { aspects: StatedNeeds::NONE.aspects, ..host.stated };
    if !is_stated {
        let GroupNeeds { local, sub_group, .. } = kernel.groups;
        let StatedNeeds { aspects, group, sub_group: of_host } = host.stated;
        let why = format!(
            "it states aspects {:?}, groups of {local:?} and sub-groups of {sub_group} in the image, but {aspects:?}, {group:?} and \
             {of_host} in the program (image target: {target}); build both anew with `cargo sycl build`",
            kernel.aspects
        );
        return Some(not_supported(query, device, &why));
    }
    if let (Some(location), Some(launch)) = (host.location, &kernel.launch)
        && !is_same_place(launch, location)
    {
        let why = format!(
            "it is launched at {launch} in the image, but at {location} in the program (image target: {target}); one of the two was \
             not built anew, which `cargo sycl build` does, or a macro has made different code for them, which must be the same"
        );
        return Some(not_supported(query, device, &why));
    }
    (kernel.type_name != host.type_name).then(|| {
        let why = format!(
            "it is of type \"{}\" in the image, but of type \"{}\" in the program (image target: {target}); one of the two was not \
             built anew, which `cargo sycl build` does",
            kernel.type_name, host.type_name
        );
        not_supported(query, device, &why)
    })
}

fn is_same_place(image: &SourceLocation, program: &Location<'_>) -> bool {
    (image.file.as_str(), image.line, image.column) == (program.file(), program.line(), program.column())
}

pub(super) fn error(code: ErrorCode, query: &Query<'_>, device: &dyn Device, why: &str) -> Error {
    let (name, device) = (query.name, &device.info().name);
    Error::new(code, format!("kernel \"{name}\" on device \"{device}\": {why}"))
}

pub(super) fn not_supported(query: &Query<'_>, device: &dyn Device, why: &str) -> Error {
    error(ErrorCode::KernelNotSupported, query, device, why)
}

/// The error for a bundle that cannot be decoded, of all of whose kernels nothing is known. `device` is the one that they were meant for,
/// if it is one.
pub(super) fn unreadable(unit: &Unit, device: Option<&dyn Device>, error: &ImageError) -> Error {
    let name = if unit.name.is_empty() { "the program" } else { &unit.name };
    let device = device.map_or_else(String::new, |device| format!("device \"{}\": ", device.info().name));
    let message = format!(
        "{device}the device images of \"{name}\", of all its kernels, cannot be read: {error}; build it anew with `cargo sycl build`, \
         and with the version of `cargo sycl` that the version of `oxisycl` has"
    );
    Error::with_source(ErrorCode::KernelNotSupported, message, error.clone())
}

fn no_image(index: &Index, device: &dyn Device, query: &Query<'_>) -> Error {
    let own = index.errors().find(|(unit, _)| query.unit.is_some() && unit.unit == query.unit);
    if let Some((unit, error)) = own.or_else(|| index.errors().next()) {
        let unreadable = unreadable(unit, None, error);
        let why =
            not_supported(query, device, &format!("it has no device image among those that can be read; {unreadable}"));
        return Error::with_source(why.code(), why.to_string(), unreadable);
    }
    let why = if index.is_empty() {
        "the program has no device images; build it with `cargo sycl build`"
    } else {
        "no device image of the program has it; build the crate that launches it with `cargo sycl build`"
    };
    not_supported(query, device, why)
}

/// Why none of the candidates runs.
fn unusable(all: &[&Candidate], fitting: &[(Rank, &Candidate)], device: &dyn Device, query: &Query<'_>) -> Error {
    for (_, candidate) in fitting {
        if let Entry::Kernel(position) = candidate.entry {
            let kernel = &candidate.image.image.kernels[position];
            let missing = missing(kernel, device);
            let sizes = device.info().lacks(&sizes(kernel)).filter(|_| missing.is_empty());
            return not_supported(query, device, &sizes.unwrap_or_else(|| why_missing(&missing)));
        }
    }
    if let Some((_, candidate)) = fitting.first()
        && let Entry::Unsupported(position) = candidate.entry
    {
        let image = &candidate.image.image;
        let reason = &image.unsupported[position].reason;
        let why = format!(
            "the target {} cannot run it: {reason}; submit it to another device, such as the host's, or write the kernel without \
             what is named here",
            image.target
        );
        return not_supported(query, device, &why);
    }
    let list = |targets: &mut dyn Iterator<Item = String>| {
        let mut names: Vec<String> = targets.collect();
        names.dedup();
        names.join(", ")
    };
    let targets = &device.info().image_targets;
    let has = list(&mut all.iter().map(|candidate| candidate.image.image.target.to_string()));
    let takes = list(&mut targets.iter().map(ImageTarget::to_string));
    // Nothing can be built for hosts, which run the program's own code.
    let remedy = match targets.first() {
        Some(ImageTarget::Host { .. }) | None => "submit it to another device, such as the host's".to_owned(),
        Some(target) => format!("build it with `cargo sycl build --targets {target}`"),
    };
    not_supported(query, device, &format!("its images are for {has}, and the device takes {takes}; {remedy}"))
}

/// What messages say of aspects that a kernel needs and the device lacks.
fn why_missing(missing: &[&str]) -> String {
    let names = missing.join(", ");
    let (plural, them) = if missing.len() == 1 { ("", "it") } else { ("s", "them") };
    let unknown: Vec<&str> = missing.iter().filter(|name| known_aspect(name).is_none()).copied().collect();
    let remedy = if unknown.is_empty() {
        format!("submit it to a device that has {them} (`Device::has`), or write the kernel without {them}")
    } else {
        let unknown = unknown.join(", ");
        format!("this version of `oxisycl` does not know {unknown}: build with its own version of `cargo sycl`")
    };
    format!("it needs the aspect{plural} {names}, which the device lacks; {remedy}")
}

fn ambiguous(index: &Index, first: &Candidate, second: &Candidate, device: &dyn Device, query: &Query<'_>) -> Error {
    let (first, second) = (index.name(first.bundle), index.name(second.bundle));
    let why = format!(
        "\"{first}\" and \"{second}\" have different images of it, and the program's half of the kernel is in neither; build the \
         crate that launches it with `cargo sycl build`, or those two with the same options"
    );
    not_supported(query, device, &why)
}
