//! The Tenant of an Instance: in the namespace of a Tenant, it must be that Tenant.

use serde_json::Value;

use crate::api::tenancy::mismatch;
use crate::webhook::decision::Denial;
use crate::webhook::review::{Operation, Request};
use crate::webhook::view::View;

/// The path of an Instance's Tenant in its `spec`.
const TENANT_REF: &str = "/spec/tenant.crownlabs.polito.it~1TenantRef/name";

/// Refuses to create an Instance for a Tenant that does not own its namespace, and to change it to such a Tenant. Other
/// changes of stored Instances are allowed.
pub fn check(request: &Request, view: &dyn View) -> Result<(), Denial> {
    let named = |object: &Value| object.pointer(TENANT_REF).and_then(Value::as_str).map(str::to_owned);
    let new = named(&request.object);
    match request.operation {
        Operation::Delete | Operation::Connect => return Ok(()),
        Operation::Update if new == named(&request.old_object) => return Ok(()),
        Operation::Create | Operation::Update => {}
    }
    let Some(owner) = view.tenant_of_namespace(&request.namespace) else { return Ok(()) };
    mismatch(&new.unwrap_or_default(), &request.namespace, &owner)
        .map_or(Ok(()), |fault| Err(Denial::forbidden(fault)))
}
