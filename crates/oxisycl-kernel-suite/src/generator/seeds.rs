//! Which seeds kernels are made of.

/// Seeds of the kernels over ranges, of those over groups, and of nests of arguments; each in order and once.
#[derive(Debug, PartialEq)]
pub(crate) struct Seeds {
    pub(crate) ranges: Vec<u64>,
    pub(crate) groups: Vec<u64>,
    pub(crate) arguments: Vec<u64>,
}

impl Seeds {
    /// The seeds that a text lists: numbers and ranges like `100..200`, with spaces between. `groups:` stands before those of kernels over groups,
    /// and `arguments:` before those of nests of arguments. The rest of a line behind `#` is left out.
    ///
    /// # Errors
    /// What is neither.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut seeds = Self { ranges: Vec::new(), groups: Vec::new(), arguments: Vec::new() };
        let words = text.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
        for word in words {
            let number =
                |text: &str| text.parse::<u64>().map_err(|_| format!("\"{word}\" is no seed and no range of seeds"));
            let (list, rest) = match word.split_once(':') {
                Some(("groups", rest)) => (&mut seeds.groups, rest),
                Some(("arguments", rest)) => (&mut seeds.arguments, rest),
                _ => (&mut seeds.ranges, word),
            };
            match rest.split_once("..") {
                Some((from, to)) => list.extend(number(from)?..number(to)?),
                None => list.push(number(rest)?),
            }
        }
        for list in [&mut seeds.ranges, &mut seeds.groups, &mut seeds.arguments] {
            list.sort_unstable();
            list.dedup();
        }
        Ok(seeds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_and_ranges_without_comments() {
        let seeds = Seeds { ranges: vec![1, 3, 10, 11, 12], groups: vec![2, 7, 8], arguments: vec![4] };
        assert_eq!(Seeds::parse("3 10..13 groups:7..9 # 5\n1 3 groups:2 arguments:4"), Ok(seeds));
        for wrong in ["1..x", "group:1", "groups:"] {
            assert!(Seeds::parse(wrong).unwrap_err().contains(wrong));
        }
    }
}
