//! `crownlabs why`, `crownlabs status` and `crownlabs --version`: the state of an Instance and its next steps, the
//! Instances of a course, the state of the installation, and its versions. The facts about Instances come from
//! [`api::why`](crate::api::why). This module reads them from a cluster and phrases them like conditions and events.

pub mod course;
mod installation;
pub mod instance;
mod live;
mod obstacle;
mod value;
mod version;
pub mod words;

pub use live::{Answer, installation, status, why};
pub use version::cluster_versions;
