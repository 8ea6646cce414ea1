//! The modules that all control loops share. They do not depend on the meaning of an Instance, a Tenant or a Workspace.
//!
//! | module | content |
//! |---|---|
//! | [`reconciler`], [`reconcile`], [`driver`] | the trait of a control loop, the steps of a reconcile as a state machine, and the driver that carries them out |
//! | [`preview`] | computes the writes of a reconcile, in a cluster that is only read |
//! | [`store`], [`selection`], [`watch`], [`resume`], [`store_set`] | the shared stores: one for each kind and selector, filled by one watch and by the responses to our own writes; the stores of one loop |
//! | [`answer`], [`pieces`] | responses of the API server, read object by object while they arrive |
//! | [`queue`], [`controller`], [`control_loop`], [`readiness`] | the work queue with its two priorities, the workers of a loop, when they run, and the readiness of the replica |
//! | [`replica`] | loops that work in every replica, independent of leader election |
//! | [`plan`], [`component`], [`problem`], [`merge`], [`finalizer`], [`apply`] | the plan of a reconcile as a value, JSON merge patches, finalizers, and the apply engine |
//! | [`conditions`], [`events`], [`object_events`] | status conditions and Kubernetes Events; the causes of waits in the events of a namespace |
//! | [`cluster`] | the stores of the cluster resources that environments need: nodes, classes, Gateways, KubeVirt |
//! | [`definitions`] | compares the installed CRDs with ours |
//! | [`context`], [`client`], [`gate`], [`error`], [`cause`] | the clients of the API server, which count requests and reject writes while the lease is not held; their errors; the causes of failed connections |
//! | [`files`], [`replace`], [`connections`], [`http_server`], [`grpc_server`], [`task`] | files that are read again when they change; atomic replacement of files; the connections of servers, the HTTP server and the gRPC server; tasks that must not end |
//! | [`certificate`] | the certificate that a server presents |
//! | [`sighting`] | whether another replica holds a Lease |
//! | [`metrics`], [`clock`], [`key`] | metrics; the clock; the key of an object |

pub mod answer;
#[cfg(test)]
pub mod api_server;
pub mod apply;
pub mod cause;
pub mod certificate;
pub mod children;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod component;
pub mod conditions;
pub mod connections;
pub mod context;
pub mod control_loop;
pub mod controller;
pub mod definitions;
pub mod driver;
pub mod error;
pub mod events;
pub mod files;
pub mod finalizer;
pub mod gate;
pub mod grpc_server;
pub mod http_server;
pub mod key;
pub mod merge;
pub mod metric;
pub mod metrics;
pub mod object_events;
pub mod outages;
pub mod pieces;
pub mod plan;
pub mod preview;
pub mod problem;
pub mod queue;
pub mod readiness;
pub mod reconcile;
pub mod reconciler;
#[cfg(feature = "daemon")]
pub mod replace;
pub mod replica;
pub mod resume;
pub mod selection;
pub mod sighting;
#[cfg(test)]
pub mod silent;
pub mod single_flight;
pub mod store;
pub mod store_set;
pub mod task;
pub mod watch;
pub mod watch_health;

pub use key::ObjectKey;
