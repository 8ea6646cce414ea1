//! The admission webhooks (05 §14b, 02 §15.1): what the API server asks us before it stores a Tenant
//! or an Instance.
//!
//! | module | what it is |
//! |---|---|
//! | [`review`], [`decision`] | the question and the answer |
//! | [`requester`], [`view`] | who is not held to the rules; what the rules see of the cluster |
//! | [`tenant`], [`instance`] | the rules: pure functions of the request, the settings, the view and the time |
//! | [`admission`], [`lookup`] | the rules behind their paths, over the shared stores |
//! | [`server`] | HTTPS |
//! | [`setup`] | puts it together |
//! | [`certificate`] | the certificate: our own authority's, renewed by the leader, or one from a folder |

pub mod admission;
pub mod certificate;
pub mod decision;
#[cfg(test)]
mod fixture;
pub mod instance;
pub mod lookup;
pub mod requester;
pub mod review;
pub mod server;
pub mod setup;
pub mod tenant;
pub mod view;
