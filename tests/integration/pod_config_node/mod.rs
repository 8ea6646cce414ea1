//! The node side of pod networks: links in network namespaces of the test, with pools that the test writes in the place of the
//! leader.

mod conflicts;
mod containerd;
mod crash;
mod damage;
mod flow;
mod node;
mod pools;
mod runtime;
