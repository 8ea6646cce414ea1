//! The types of the custom resources, one file for each kind, and their common parts: quantities, names, labels,
//! conditions. This module sends no requests and does not depend on an asynchronous runtime.

pub mod announcement;
pub mod condition;
pub mod connection;
pub mod crd;
pub mod csv;
pub mod custom;
pub mod denial;
pub mod environment;
pub mod exposed_ports;
pub mod image;
pub mod image_list;
pub mod instance;
pub mod instance_snapshot;
pub mod interned;
pub mod ip_range;
pub mod labels;
mod lenient;
pub mod lifetime;
pub mod meta;
pub mod names;
pub mod object;
pub mod openings;
pub mod parts;
pub mod pod_config;
pub mod private_key;
pub mod promise;
pub mod public_key;
pub mod quantity;
pub mod quota;
pub mod reason;
pub mod reference;
pub mod requirements;
pub mod resources;
pub mod shared_volume;
pub mod sharing;
pub mod shown;
pub mod template;
pub mod template_fault;
pub mod tenancy;
pub mod tenant;
pub mod text;
pub mod usage;
pub mod why;
pub(crate) mod wire;
pub mod workspace;

pub use announcement::Announcement;
pub use condition::Condition;
pub use instance::Instance;
pub use instance_snapshot::InstanceSnapshot;
pub use object::{Kind, Object};
pub use quantity::Quantity;
pub use reference::GenericRef;
pub use template::Template;
pub use tenant::Tenant;
pub use workspace::Workspace;

/// The API group of all our kinds except [`pod_config::PodConfig`] and [`announcement::Announcement`].
pub const GROUP: &str = "crownlabs.polito.it";
/// The API group of the kinds that only the pages of the dashboard use.
pub const LAB_GROUP: &str = "lab.crownlabs.polito.it";
