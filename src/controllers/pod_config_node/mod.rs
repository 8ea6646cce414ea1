//! The node side of pod networks: the links of the pods on one node. The leader (`podConfig`) says which address each
//! attachment of a pod has; this loop makes the links, and reports what it has made
//! (`controllers/pod_network.rs`).
//!
//! | of the node | what is done |
//! |---|---|
//! | an allocation of a pod on it | a veth pair between the pod and the bridge, with the address in the pod |
//! | an allocation that is released | the pair is deleted; that needs neither the pod nor the container runtime |
//! | a bridge that an allocation needs | created, with the gateways of its ranges; deleted once no pool names it and no link uses it |
//! | a link that was changed | repaired, at once if the node's end shows it, else within `resync` |
//! | a foreign link or bridge | left alone, whatever its name |
//!
//! | file | what it has |
//! |---|---|
//! | `records.rs` | what the pools ask of this node |
//! | `mark.rs` | how our links are recognised |
//! | `plan.rs` and its parts | the plan: a pure function of what is asked for, and of the links that there are |
//! | `settle.rs` | carries out the plan of the node |
//! | `work.rs` | makes, verifies and repairs the links of one pod |
//! | `locate.rs` | which process a pod has, from the container runtime |
//! | `pods.rs` | the pods: which wait for what, and when they are tried again |
//! | `report.rs`, `write.rs` | the report: a pure function; its `ConfigMap` |
//! | `node_loop.rs`, `running.rs` | the loop: its stores; what it does when something happens |

mod due;
mod locate;
mod mark;
mod node_loop;
mod plan;
mod pods;
mod records;
mod report;
mod running;
mod settle;
pub mod telemetry;
#[cfg(test)]
mod tests;
mod work;
mod write;

pub use node_loop::PodConfigNodeLoop;
