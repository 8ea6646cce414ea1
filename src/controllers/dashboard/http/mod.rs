//! The HTTP edge: extractors, responses and headers.

pub mod assets;
pub mod context;
pub mod csrf;
pub mod fields;
pub mod headers;
pub mod response;
