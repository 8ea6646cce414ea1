//! The header `Link` (RFC 8288), which refers to the next page of a list.

use http::HeaderMap;
use http::header::LINK;

/// Returns the target of the first link with the relation `next`, unchanged.
pub(super) fn next(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(LINK).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(Links).find_map(|(target, parameters)| is_next(parameters).then_some(target))
}

/// The links in a value of the header, each with its parameters.
struct Links<'a>(&'a str);

impl<'a> Iterator for Links<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (_, rest) = self.0.split_once('<')?;
        let (target, rest) = rest.split_once('>')?;
        // The parameters end at a comma outside of quotes.
        let mut is_quoted = false;
        let end = rest.char_indices().find(|(_, c)| {
            is_quoted ^= *c == '"';
            *c == ',' && !is_quoted
        });
        let end = end.map_or(rest.len(), |(at, _)| at);
        let (parameters, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        self.0 = rest;
        Some((target.trim(), parameters))
    }
}

/// Whether the relations of a link include `next`.
fn is_next(parameters: &str) -> bool {
    parameters.split(';').filter_map(|parameter| parameter.split_once('=')).any(|(name, value)| {
        let mut relations = value.trim().trim_matches('"').split_whitespace();
        name.trim().eq_ignore_ascii_case("rel")
            && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn found(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(LINK, HeaderValue::from_str(value).unwrap());
        }
        next(&headers).map(str::to_owned)
    }

    #[test]
    fn the_next_page_is_found_among_other_links() {
        for (values, expected) in [
            (&["</v2/_catalog?last=b&n=2>; rel=\"next\""][..], Some("/v2/_catalog?last=b&n=2")),
            (
                &["<https://r.example/v2/_catalog?last=b>; rel=next"],
                Some("https://r.example/v2/_catalog?last=b"),
            ),
            (&["</a>; rel=\"prev\", </b>; title=\"x, <y>; rel=next\"; REL=\"last next\""], Some("/b")),
            (&["</a>; rel=\"prev\"", "</b>;rel=\"Next\""], Some("/b")),
            (&["</a>; rel=\"prev\""], None),
            (&["</a>; rel=\"nextone\""], None),
            (&["</a"], None),
            (&["/a; rel=next"], None),
            (&[""], None),
            (&[], None),
        ] {
            assert_eq!(found(values).as_deref(), expected, "{values:?}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_read(value in "[ -~]{0,64}", target in "[!-;=?-~]{1,32}") {
            found(&[&value]);
            let link = format!("<{target}>; rel=\"next\"");
            prop_assert_eq!(found(&[&link]), Some(target));
        }
    }
}
