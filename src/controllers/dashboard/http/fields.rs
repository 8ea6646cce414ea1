//! The fields of forms and queries.

use form_urlencoded::{Serializer, parse};

/// The fields of a form or a query, in their order.
#[derive(Debug, Clone, Default)]
pub struct Fields(pub Vec<(String, String)>);

impl Fields {
    /// Parses a text of the type `application/x-www-form-urlencoded`.
    pub fn parse(text: &[u8]) -> Self {
        Self(parse(text).map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Returns the value of the first field with this name; empty if it is missing.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Returns the fields of a query that select the content of its page, encoded: those with a value, without the
    /// language, which is stored in a cookie.
    pub fn encoded(&self) -> String {
        let fields = self.0.iter().filter(|(name, value)| !value.is_empty() && name != "lang");
        Serializer::new(String::new()).extend_pairs(fields).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_with_a_name_counts() {
        let fields = Fields::parse("name=a+b%2F%3C&name=c&=&x&broken=%ff".as_bytes());
        assert_eq!([fields.get("name"), fields.get("x"), fields.get("y")], ["a b/<", "", ""]);
        assert_eq!(fields.get("broken"), "\u{fffd}");
    }

    #[test]
    fn a_page_keeps_its_query_without_the_language_and_without_empty_fields() {
        for (query, kept) in [
            ("q=a%26b%20c&lang=it&state=&page=2", "q=a%26b+c&page=2"),
            ("who=ada&who=%C3%A9%22%3C", "who=ada&who=%C3%A9%22%3C"),
            ("lang=it", ""),
        ] {
            assert_eq!(Fields::parse(query.as_bytes()).encoded(), kept);
        }
    }
}
