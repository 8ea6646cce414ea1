//! The workspace loop creates the namespace and the RBAC of Workspaces, and enrols candidates.
//!
//! | stage | what |
//! |---|---|
//! | observe | reads from the stores: the Workspace, the objects that it owns, and the Tenants whose spec names it |
//! | plan | finalizer and label, namespace, role bindings; the enrolment or removal of candidates; its roles in Keycloak |
//! | apply | the shared engine; Keycloak at the same time |
//! | report | namespace, subscriptions, ready, conditions; one patch of the status, if it differs |
//!
//! If the process dies between two writes, the next reconcile plans the remaining ones from the existing objects. A
//! Workspace that is being deleted keeps its finalizer until no Tenant names it and its role bindings and its roles in
//! Keycloak are deleted.

mod children;
mod managers;
mod observe;
mod plan;
mod reconcile;
mod report;
mod stores;

pub use reconcile::WorkspaceReconciler;
