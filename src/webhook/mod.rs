//! The admission webhooks, which the API server calls before it stores a Tenant, a Template or an Instance.
//!
//! | module | what it is |
//! |---|---|
//! | [`review`], `bounded`, [`decision`] | the `AdmissionReview` that is received, and what the response is made from |
//! | [`requester`], [`view`] | which users the rules do not apply to; the objects of the cluster that the rules read |
//! | [`tenant`], [`instance`], `template`, `texts` | the rules: pure functions of the request, the settings, the view and the time |
//! | [`admission`], [`lookup`] | the paths of the webhooks; the view of the rules, made from the shared stores |
//! | [`server`] | the HTTPS server |
//! | [`setup`] | puts all of this together |
//! | [`certificate`] | the serving certificate: of our own authority and renewed by the leader, or from a folder |

pub mod admission;
mod bounded;
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
pub mod telemetry;
mod template;
pub mod tenant;
mod texts;
pub mod view;
