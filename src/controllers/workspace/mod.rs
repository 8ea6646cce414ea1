//! The workspace loop: a namespace, RBAC and enrolment for each course.
//!
//! | stage | what |
//! |---|---|
//! | observe | the Workspace, the objects that it owns, and the Tenants that name it, from the stores |
//! | plan | finalizer and label, namespace, role bindings; which candidates are enrolled or struck off; its roles in Keycloak |
//! | apply | the shared engine; Keycloak beside it |
//! | report | namespace, subscriptions, ready, conditions; one patch of the status, if it differs |
//!
//! If the process dies between any two writes, the next reconcile plans from what it finds. A Workspace
//! that is being deleted keeps its finalizer until no Tenant names it, its role bindings are gone and Keycloak
//! has no roles of it.

mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

pub use reconcile::WorkspaceReconciler;
