//! What became of the item loops of a kernel, as text in its image, and how tools read that text again.
//!
//! Images have the text behind the options of their build. The places in reasons for refusals are read here, too.

use std::fmt;

use oxisycl_image::SourceLocation;

use super::cost::Gain;

/// What the reason begins with where rustc's own code of a kernel is as good as another one.
pub const AS_FAST: &str = "it is as fast: ";
/// What each outcome begins with, among the options of a build.
const BEGIN: &str = "; its work-items run ";

/// What became of an item loop. If a kernel has several, each has its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// So many items are run at once, which is so much faster by estimate.
    Vector { lanes: u32, gain: Gain, place: Option<SourceLocation> },
    /// LLVM makes vectors of the loop, which lanes would not better.
    Llvms { place: Option<SourceLocation> },
    /// One item after the other, for this reason, which has its place at the end.
    Scalar(String),
}

impl Outcome {
    /// What becomes of kernels without a loop.
    pub(crate) fn of_a_task() -> Self {
        Self::Scalar("it is a single task".to_owned())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self {
            Self::Vector { lanes, gain, place } => {
                write!(f, "its work-items run in vectors of {lanes} lanes ({gain})")?;
                place
            }
            Self::Llvms { place } => {
                f.write_str("its work-items run in vectors that LLVM makes by itself")?;
                place
            }
            Self::Scalar(reason) => return write!(f, "its work-items run one by one: {reason}"),
        };
        place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))
    }
}

/// How the work-items of a loop run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoopForm {
    /// In the lanes of vectors.
    Lanes,
    /// In vectors that LLVM makes by itself.
    Llvms,
    /// One by one.
    Scalar,
}

/// What an image says of a loop over work-items.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopRemark<'t> {
    /// How they run.
    pub form: LoopForm,
    /// All that is said, except the place: `its work-items run one by one: it may wait for another work-item`.
    pub text: &'t str,
    /// The place of the reason, or of the loop.
    pub place: Option<SourceLocation>,
}

/// What the build options of an image say of each loop over work-items. Code without lanes has nothing there.
pub fn loop_remarks(build_options: &str) -> Vec<LoopRemark<'_>> {
    let begins: Vec<usize> = build_options.match_indices(BEGIN).map(|(position, _)| position).collect();
    let ends = begins.iter().skip(1).copied().chain([build_options.len()]);
    let texts = begins.iter().zip(ends).map(|(begin, end)| &build_options[begin + "; ".len()..end]);
    texts
        .map(|text| {
            let how = &text[BEGIN.len() - "; ".len()..];
            let form = match how {
                _ if how.starts_with("in vectors of ") => LoopForm::Lanes,
                _ if how.starts_with("in vectors ") => LoopForm::Llvms,
                _ => LoopForm::Scalar,
            };
            let placed = at_end(text).and_then(|(text, place)| Some((text, location(place)?)));
            let (text, place) = placed.map_or((text, None), |(text, place)| (text, Some(place)));
            LoopRemark { form, text, place }
        })
        .collect()
}

/// The place in the reason of a refusal: where the user's code needs what the target lacks, or else where the kernel is.
pub fn place_of_refusal(reason: &str) -> Option<SourceLocation> {
    let (_, places) = at_end(reason)?;
    let places = places.split_once(", launched at ").map_or(places, |(kernel, _)| kernel);
    let place = places.strip_prefix("at ").or_else(|| places.strip_prefix("launched at "));
    location(place.or_else(|| Some(places.rsplit_once(" at ")?.1))?)
}

/// What stands in parentheses at the end of a text, and what is before them. There may be parentheses within.
fn at_end(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_suffix(')')?;
    let mut depth = 0;
    for (position, character) in inner.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' if depth > 0 => depth -= 1,
            '(' => return Some((inner[..position].trim_end(), &inner[position + 1..])),
            _ => {}
        }
    }
    None
}

/// A place as messages have it: file, line and column, or the first two.
fn location(text: &str) -> Option<SourceLocation> {
    let (rest, last) = text.rsplit_once(':')?;
    let last = last.parse().ok()?;
    let whole = rest.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (file, line, column) = whole.map_or((rest, last, 1), |(file, line)| (file, line, last));
    (!file.is_empty()).then(|| SourceLocation { file: file.to_owned(), line, column })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, line: u32, column: u32) -> Option<SourceLocation> {
        Some(SourceLocation { file: file.to_owned(), line, column })
    }

    #[test]
    fn what_images_say_of_loops_is_read_as_it_was_written() {
        let reason = "in lanes they would be about 0.3 times as fast; so they are not (src/my (old).rs:52:9)";
        let outcomes = [
            Outcome::Vector { lanes: 8, gain: Gain(412), place: None },
            Outcome::Vector { lanes: 4, gain: Gain(130), place: place("src/a.rs", 7, 9) },
            Outcome::Llvms { place: place("src/a.rs", 8, 9) },
            Outcome::Scalar(reason.to_owned()),
            Outcome::of_a_task(),
        ];
        let mut options = "oxisycl=0.1.0 float=strict".to_owned();
        assert_eq!(loop_remarks(&options), []);
        outcomes.iter().for_each(|outcome| options += &format!("; {outcome}"));
        let remarks = loop_remarks(&options);
        let found: Vec<_> = remarks.iter().map(|remark| (remark.form, remark.text, remark.place.clone())).collect();
        let short = reason.rsplit_once(" (src").expect("a place").0;
        let [scalar, task] = [short, "it is a single task"].map(|why| format!("its work-items run one by one: {why}"));
        let expected = [
            (LoopForm::Lanes, "its work-items run in vectors of 8 lanes (about 4.1 times as fast)", None),
            (
                LoopForm::Lanes,
                "its work-items run in vectors of 4 lanes (about 1.3 times as fast)",
                place("src/a.rs", 7, 9),
            ),
            (LoopForm::Llvms, "its work-items run in vectors that LLVM makes by itself", place("src/a.rs", 8, 9)),
            (LoopForm::Scalar, &*scalar, place("src/my (old).rs", 52, 9)),
            (LoopForm::Scalar, &*task, None),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn refusals_have_the_place_of_the_users_code() {
        for (reason, expected) in [
            ("it uses the static `a::COUNT` (a::add -> a::COUNT at src/a.rs:7:9)", place("src/a.rs", 7, 9)),
            ("it needs `nowhere` (at C:/a at b.rs:7:9)", place("C:/a at b.rs", 7, 9)),
            ("it is recursive (the kernel is at src/a.rs:7, launched at src/b.rs:1:2)", place("src/a.rs", 7, 1)),
            ("it is recursive (launched at src/b.rs:1:2)", place("src/b.rs", 1, 2)),
            ("it calls `f()`", None),
            ("it is recursive (a::add -> a::add)", None),
            ("it is recursive", None),
        ] {
            assert_eq!(place_of_refusal(reason), expected, "{reason}");
        }
    }
}
