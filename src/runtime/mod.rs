//! What every loop shares. Nothing here knows what an instance, a tenant or a workspace is.
//!
//! | module | what it is |
//! |---|---|
//! | [`store`], [`watch`], [`factory`], [`registry`] | the shared stores: one a kind and selection, filled by one watch, with the answers of our own writes |
//! | [`queue`], [`controller`] | the work queue with its two priorities, and the workers of a loop |
//! | [`plan`], [`merge`], [`apply`] | what is to be done, as a value; what differs; the one writer |
//! | [`conditions`], [`events`] | what users are told |
//! | [`client`], [`gate`], [`error`] | requests: named, counted, let through only while the lease is held; what they end in |
//! | [`http_server`] | the HTTP server that all ports of the daemon are served by |
//! | [`metrics`], [`clock`], [`key`] | names for what is counted; the time; the name of an object |

pub mod apply;
pub mod client;
pub mod clock;
pub mod conditions;
pub mod controller;
pub mod desk;
pub mod error;
pub mod events;
pub mod factory;
pub mod gate;
pub mod http_server;
pub mod key;
pub mod merge;
pub mod metrics;
pub mod plan;
pub mod problem;
pub mod queue;
pub mod registry;
pub mod store;
pub mod watch;

pub use key::ObjectKey;
