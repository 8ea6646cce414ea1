//! The node side of pod networks: the links of the pods on one node. The leader (`podConfig`) assigns the address of
//! each attachment of a pod. This loop creates the links and reports the result (`controllers/pod_network.rs`).
//!
//! | object on the node | action |
//! |---|---|
//! | an allocation of a pod | a veth pair between the pod and the bridge is created, with the address in the pod |
//! | an allocation to be released | the pair is deleted, which requires neither the pod nor the container runtime |
//! | a bridge that an allocation needs | created, with the gateways of its ranges; deleted when no pool names it and no link uses it |
//! | a link that was changed | repaired immediately if the node's end shows the change, otherwise within `resync` |
//! | a foreign link or bridge | left unchanged, regardless of its name |
//!
//! | file | content |
//! |---|---|
//! | `records.rs` | the links and bridges that the pools request on this node |
//! | `mark.rs` | how our links are recognised |
//! | `plan.rs` and its parts | the plan: a pure function of the requested and the existing links |
//! | `settle.rs` | carries out the plan of the node |
//! | `work.rs` | creates, verifies and repairs the links of one pod |
//! | `locate.rs` | finds the process of a pod through the container runtime |
//! | `pods.rs` | the pods: their state, and their retries |
//! | `report.rs`, `write.rs` | the report: a pure function; its `ConfigMap` |
//! | `node_loop.rs`, `running.rs` | the loop: its stores; its reaction to events |

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
