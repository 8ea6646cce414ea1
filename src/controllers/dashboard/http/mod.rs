//! The HTTP edge: extractors, responses and headers.

pub mod assets;
pub mod brand;
pub mod context;
pub mod csrf;
pub mod fetch;
pub mod fields;
pub mod headers;
pub mod response;
pub mod socket;
