//! Lines and lists of lines, cut to what is easily read.

/// The first characters of a line.
pub(crate) fn shortened(line: &str, longest: usize) -> String {
    line.chars().take(longest).collect()
}

/// The last `most` lines. If there were more, a line before them says how many.
pub(crate) fn last(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() > most {
        let left_out = lines.len() - most;
        lines.drain(..left_out);
        lines.insert(0, format!("({left_out} lines before these are left out)"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_the_others_counted() {
        let lines = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert_eq!(last(lines(&["a", "b"]), 2), ["a", "b"]);
        assert_eq!(last(lines(&["a", "b", "c"]), 1), ["(2 lines before these are left out)", "c"]);
    }
}
