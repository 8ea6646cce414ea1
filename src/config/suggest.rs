//! Suggestions for misspelt keys ("did you mean").

/// The candidate that is most similar to a word, if it is similar enough to be what was meant: at most one
/// edit for every three characters, and at most three in total. Case is ignored.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let limit = (word.len() / 3).min(3);
    candidates
        .map(|candidate| (distance(&word, &candidate.to_lowercase().chars().collect::<Vec<_>>()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours between two words (optimal string
/// alignment distance).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut left_above = None;
    for (row, &a) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        let mut left = None;
        for (column, &b) in to.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut best = at(&last, column) + usize::from(a != b);
            best = best.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            if left_above == Some(b) && left == Some(a) && column > 0 {
                best = best.min(at(&before, column - 1) + 1);
            }
            current.push(best);
            left = Some(b);
        }
        before = std::mem::replace(&mut last, current);
        left_above = Some(a);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(from: &str, to: &str) -> usize {
        distance(&from.chars().collect::<Vec<_>>(), &to.chars().collect::<Vec<_>>())
    }

    #[test]
    fn edits_are_counted() {
        let cases = [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "ab", 1),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("concurency", "concurrency", 1),
        ];
        for (from, to, edits) in cases {
            assert_eq!(between(from, to), edits, "{from} {to}");
            assert_eq!(between(to, from), edits, "{to} {from}");
        }
    }

    #[test]
    fn only_slips_are_guessed() {
        let keys = ["metrics", "health", "websiteBaseUrl", "min", "max"];
        let guess = |word: &str| nearest(word, keys.into_iter());
        assert_eq!(guess("metrcis"), Some("metrics"));
        assert_eq!(guess("helth"), Some("health"));
        assert_eq!(guess("WEBSITEBASEURL"), Some("websiteBaseUrl"));
        assert_eq!(guess("website-base-url"), Some("websiteBaseUrl"));
        // One edit from `min` and from `max`; the first is taken.
        assert_eq!(guess("mix"), Some("min"));
        // Two edits in three characters are another word.
        assert_eq!(guess("mop"), None);
        assert_eq!(guess("webhook"), None);
        assert_eq!(guess(""), None);
    }
}
