//! Live pages: the watches, the broadcast of their changes, and the streams to the browsers.

pub mod address;
pub mod broadcast;
mod changes;
pub mod handler;
mod stream;
pub mod watches;
