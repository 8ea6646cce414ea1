//! The declaration of a part of the catalogue.

/// Declares a part of the catalogue: its texts by their kind.
macro_rules! catalogue {
    ($(#[$doc:meta])+ pub struct $part:ident; $($kind:ty: $($name:ident),+;)+) => {
        $(#[$doc])+
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        // Delete a text that no page shows.
        #[deny(dead_code)]
        pub struct $part {
            $($(pub $name: $kind,)+)+
        }
    };
}
pub(crate) use catalogue;
