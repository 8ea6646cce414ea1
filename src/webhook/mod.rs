//! The admission webhooks, which the API server calls before it stores a Tenant, a Template or an Instance.
//!
//! | module | contents |
//! |---|---|
//! | [`review`], `bounded`, [`decision`] | the received `AdmissionReview`, and the parts of the response |
//! | [`requester`], [`view`] | the users who are exempt from the rules; the objects of the cluster that the rules read |
//! | [`tenant`], [`instance`], `template`, `texts` | the rules: pure functions of the request, the settings, the view and the time |
//! | `preserved` | the fields of a Template that the official page drops because it does not know them |
//! | [`admission`], [`lookup`] | the paths of the webhooks; the view of the rules, made from the shared stores |
//! | [`server`] | the HTTPS server |
//! | [`setup`] | assembles these parts |
//! | [`certificate`] | the serving certificate: issued by the daemon's authority and renewed by the leader, or from a folder |

pub mod admission;
mod bounded;
pub mod certificate;
pub mod decision;
#[cfg(test)]
mod fixture;
pub mod instance;
pub mod lookup;
mod preserved;
pub mod requester;
pub mod review;
pub mod server;
pub mod setup;
pub mod telemetry;
mod template;
pub mod tenant;
mod texts;
pub mod view;
