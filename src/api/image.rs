//! Names of container images, by the grammar of the OCI distribution specification.

/// Whether a text is the name of a repository: components separated by slashes. A component consists of
/// lower-case letters and digits, with one dot, one or two underscores, or any number of dashes between them.
pub fn is_repository(text: &str) -> bool {
    text.split('/').all(is_component)
}

/// Whether a text is one component of the name of a repository.
fn is_component(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator = |run: &str| matches!(run, "." | "_" | "__") || run.bytes().all(|byte| byte == b'-');
    let inner = text.trim_matches(is_plain);
    // Without letters and digits at both ends: empty, or the separators and what is between them.
    let bounded = text.starts_with(is_plain) && text.ends_with(is_plain);
    bounded && inner.split(is_plain).filter(|run| !run.is_empty()).all(is_separator)
}

/// Whether a text is a tag: at most 128 letters, digits, underscores, dots and dashes, the last two not at its beginning.
pub fn is_tag(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_follow_the_grammar_of_registries() {
        for text in ["a", "0", "ab", "a.b", "a_b", "a__b", "a-b", "a---b", "a.b_c-d", "dir/a.b", "a/b/c"] {
            assert!(is_repository(text), "{text}");
        }
        for text in [
            "", "A", "a..b", "a___b", "a._b", "a-.b", ".a", "a.", "-a", "a-", "_a", "a_", "/a", "a/", "a//b",
            "a:b", "a@b", "a b", "ä", "a/../b", "..",
        ] {
            assert!(!is_repository(text), "{text}");
        }
    }
}
