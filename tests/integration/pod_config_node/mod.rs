//! The node side of pod networks: links in network namespaces of the test, with pools that the test writes in place of
//! the leader; and both sides together.

pub mod allocations;
mod conflicts;
mod containerd;
mod crash;
mod damage;
mod flow;
mod kubelet;
mod monitor;
pub mod node;
pub mod pools;
mod returned;
mod runtime;
mod together;
mod unable;
