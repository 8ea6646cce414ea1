//! Suggestions for misspelt keys ("did you mean").

/// Returns the candidate that is most similar to a word, if it is similar enough to be a likely misspelling: at most
/// one edit for every three characters, and at most three in total. An edit inserts, deletes or replaces a character,
/// or swaps two neighbours. Case is ignored.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let limit = (word.chars().count() / 3).min(3);
    candidates
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_likely_misspellings_get_a_suggestion() {
        let keys = ["metrics", "health", "websiteBaseUrl", "min", "max"];
        let guess = |word: &str| nearest(word, keys.into_iter());
        assert_eq!(guess("metrcis"), Some("metrics"));
        assert_eq!(guess("helth"), Some("health"));
        assert_eq!(guess("WEBSITEBASEURL"), Some("websiteBaseUrl"));
        assert_eq!(guess("website-base-url"), Some("websiteBaseUrl"));
        // One edit from `min` and from `max`; the first is taken.
        assert_eq!(guess("mix"), Some("min"));
        // Two edits in three characters make a different word.
        assert_eq!(guess("mop"), None);
        assert_eq!(guess("webhook"), None);
        assert_eq!(guess(""), None);
    }
}
