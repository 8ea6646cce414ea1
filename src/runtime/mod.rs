//! What every loop shares. Nothing here knows what an instance, a tenant or a workspace is.
//!
//! | module | what it is |
//! |---|---|
//! | [`reconciler`], [`driver`] | a loop as data and pure functions, and what drives it |
//! | [`store`], [`watch`], [`store_set`] | the shared stores: one for each kind and selection, filled by one watch, with the answers of our own writes; and what one loop reads of them |
//! | [`queue`], [`controller`], [`control_loop`], [`readiness`] | the work queue with its two priorities, the workers of a loop, when it may work, and what it waits for |
//! | [`plan`], [`problem`], [`merge`], [`finalizer`], [`apply`] | what is to be done, as a value; what differs; the one writer |
//! | [`conditions`], [`events`] | what users are told |
//! | [`context`], [`client`], [`gate`], [`error`] | requests: named, counted, let through only while the lease is held; what they end in |
//! | [`files`], [`http_server`], [`task`] | files that are read again when they change; the HTTP servers; tasks that must not end |
//! | [`metrics`], [`clock`], [`key`] | names for what is counted; the time; the name of an object |

pub mod apply;
pub mod client;
pub mod clock;
pub mod conditions;
pub mod context;
pub mod control_loop;
pub mod controller;
pub mod driver;
pub mod error;
pub mod events;
pub mod files;
pub mod finalizer;
pub mod gate;
pub mod http_server;
pub mod key;
pub mod merge;
pub mod metrics;
pub mod plan;
pub mod problem;
pub mod queue;
pub mod readiness;
pub mod reconciler;
pub mod store;
pub mod store_set;
pub mod task;
pub mod watch;

pub use key::ObjectKey;
