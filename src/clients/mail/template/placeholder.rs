//! Placeholders: `{name}` or `{ name }`, with any white space inside the braces.

/// A part of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Text that is not changed.
    Text(String),
    /// The name of a placeholder.
    Name(&'t str),
}

/// Splits a template into its parts. Braces with anything but a `known` name are text, such as the braces of CSS.
pub(super) fn pieces(template: &str, known: impl Fn(&str) -> bool) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut text, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        if let Some((name, tail)) = name(after).filter(|(name, _)| known(name)) {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
            pieces.push(Piece::Name(name));
            rest = tail;
        } else {
            text.push('{');
            rest = after;
        }
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    pieces
}

/// Splits a text into the name at its beginning and the text after the closing brace.
fn name(text: &str) -> Option<(&str, &str)> {
    // The search stops at the next brace of either kind, so that it takes linear time.
    let (name, tail) = text.split_at(text.find(['{', '}'])?);
    Some((name.trim_matches(|c: char| c.is_ascii_whitespace()), tail.strip_prefix('}')?))
}

/// Returns the names in braces that look like placeholders but are unknown, so they are probably misspelt.
pub(super) fn unknown(template: &str, known: impl Fn(&str) -> bool) -> Vec<String> {
    let is_word = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    let words = pieces(template, is_word).into_iter().filter_map(|piece| match piece {
        Piece::Name(name) if !known(name) => Some(name.to_owned()),
        _ => None,
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(template: &str) -> String {
        let known = |name: &str| ["a", "message-id", "two words"].contains(&name);
        let show = |piece| match piece {
            Piece::Text(text) => text,
            Piece::Name(name) => format!("<{name}>"),
        };
        pieces(template, known).into_iter().map(show).collect()
    }

    #[test]
    fn only_known_names_in_braces_are_placeholders() {
        for (template, expected) in [
            ("", ""),
            ("a {a} b", "a <a> b"),
            ("{ a }{a\n}{\t\ra}", "<a><a><a>"),
            ("{ message-id }", "<message-id>"),
            ("{ two words }", "<two words>"),
            ("{A} {b} { } {}", "{A} {b} { } {}"),
            ("body { color: red } p{a}", "body { color: red } p<a>"),
            ("{{a}} {{ {a }", "{<a>} {{ <a>"),
            ("{a", "{a"),
            ("a} {", "a} {"),
            // Unicode white space is part of a name.
            ("{\u{a0}a}", "{\u{a0}a}"),
            ("ä{a}ö", "ä<a>ö"),
        ] {
            assert_eq!(shown(template), expected, "{template:?}");
        }
    }

    #[test]
    fn parsing_a_million_braces_takes_linear_time() {
        let braces = "{".repeat(1_000_000);
        assert_eq!(shown(&braces), braces);
    }

    #[test]
    fn unknown_names_are_reported_but_css_is_not() {
        let known = |name: &str| name == "prettyName";
        let found = unknown("{ prettyName } { pretyName } p { color: red } {} { a b }", known);
        assert_eq!(found, ["pretyName"]);
    }
}
