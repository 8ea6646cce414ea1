//! Roles of one client, and their assignment to users.

use ::keycloak::types::RoleRepresentation;
use serde::Deserialize;

use super::settings::encoded;
use super::{Admin, Keycloak, KeycloakError, Operation};

/// The length that Keycloak limits descriptions to, in characters.
const LONGEST_DESCRIPTION: usize = 255;

/// A role of the client that holds the roles.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Role {
    /// Keycloak's identifier.
    pub id: String,
    /// The name, such as `workspace-tea:user`.
    pub name: String,
    /// The description; empty if the role has no description.
    #[serde(default)]
    pub description: String,
}

/// The fields of a client that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Client {
    id: String,
    client_id: String,
}

/// Returns a description as Keycloak stores it: it is cut if it is too long. For comparison with
/// [`Role::description`].
pub fn description(text: &str) -> &str {
    let end = text.char_indices().nth(LONGEST_DESCRIPTION);
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// The body for creating or changing a role. Keycloak does not change fields that are absent.
fn described(name: &str, text: &str) -> RoleRepresentation {
    let (name, description) = (Some(name.to_owned()), Some(description(text).to_owned()));
    RoleRepresentation { name, description, ..RoleRepresentation::default() }
}

/// The body for assigning or removing roles. Keycloak needs identifier and name.
fn mentioned(roles: &[Role]) -> Vec<RoleRepresentation> {
    let mention = |role: &Role| RoleRepresentation {
        id: Some(role.id.clone()),
        name: Some(role.name.clone()),
        ..RoleRepresentation::default()
    };
    roles.iter().map(mention).collect()
}

impl Keycloak {
    /// The role with this name, if it exists.
    pub async fn role(&self, name: &str) -> Result<Option<Role>, KeycloakError> {
        let client = self.roles_client().await?;
        let path = format!("clients/{}/roles/{}", encoded(&client), encoded(name));
        self.read(Operation::FindRole, &path, &[]).await
    }

    /// Creates a role. Returns [`Conflict`](KeycloakError::Conflict) if a role with this name exists.
    pub async fn create_role(&self, name: &str, text: &str) -> Result<(), KeycloakError> {
        let (realm, client, body) = (self.realm(), &*self.roles_client().await?, &described(name, text));
        let create = |admin: Admin| async move {
            admin.realm_clients_with_client_uuid_roles_post(realm, client, body.clone()).await
        };
        self.write(Operation::CreateRole, create).await.map(drop)
    }

    /// Changes the description of a role.
    pub async fn update_role_description(&self, name: &str, text: &str) -> Result<(), KeycloakError> {
        let (realm, client, body) = (self.realm(), &*self.roles_client().await?, &described(name, text));
        let update = |admin: Admin| async move {
            let body = body.clone();
            admin.realm_clients_with_client_uuid_roles_with_role_name_put(realm, client, name, body).await
        };
        self.write(Operation::UpdateRole, update).await.map(drop)
    }

    /// Deletes a role, which also removes it from all users. Succeeds if the role does not exist.
    pub async fn delete_role(&self, name: &str) -> Result<(), KeycloakError> {
        let (realm, client) = (self.realm(), &*self.roles_client().await?);
        let delete = |admin: Admin| async move {
            admin.realm_clients_with_client_uuid_roles_with_role_name_delete(realm, client, name).await
        };
        self.write(Operation::DeleteRole, delete).await.map(drop)
    }

    /// The roles of our client that a user has. Roles of other clients are left out.
    pub async fn user_roles(&self, user: &str) -> Result<Vec<Role>, KeycloakError> {
        let client = self.roles_client().await?;
        let path = format!("users/{}/role-mappings/clients/{}", encoded(user), encoded(&client));
        Ok(self.read(Operation::UserRoles, &path, &[]).await?.unwrap_or_default())
    }

    /// Assigns roles to a user. Roles that the user has already stay.
    pub async fn add_roles(&self, user: &str, roles: &[Role]) -> Result<(), KeycloakError> {
        if roles.is_empty() {
            return Ok(());
        }
        let (realm, client, body) = (self.realm(), &*self.roles_client().await?, &mentioned(roles));
        let add = |admin: Admin| async move {
            let body = body.clone();
            let mapping = admin.realm_users_with_user_id_role_mappings_clients_with_client_id_post(
                realm, user, client, body,
            );
            mapping.await
        };
        self.write(Operation::AddRoles, add).await.map(drop)
    }

    /// Removes roles from a user. Succeeds if the user does not have them.
    pub async fn remove_roles(&self, user: &str, roles: &[Role]) -> Result<(), KeycloakError> {
        // A request without roles would remove all roles.
        if roles.is_empty() {
            return Ok(());
        }
        let (realm, client, body) = (self.realm(), &*self.roles_client().await?, &mentioned(roles));
        let remove = |admin: Admin| async move {
            let body = body.clone();
            let mapping = admin.realm_users_with_user_id_role_mappings_clients_with_client_id_delete(
                realm, user, client, body,
            );
            mapping.await
        };
        self.write(Operation::RemoveRoles, remove).await.map(drop)
    }

    /// Returns the identifier of a client.
    pub(super) async fn find_client(&self, client_id: &str) -> Result<String, KeycloakError> {
        let query = [("clientId", client_id)];
        let found: Option<Vec<Client>> = self.read(Operation::RolesClient, "clients", &query).await?;
        let client = found.into_iter().flatten().find(|client| client.client_id == client_id);
        client.map(|client| client.id).ok_or_else(|| {
            KeycloakError::NotFound(format!(
                "the Keycloak realm has no client {client_id:?}, which should hold the roles; check \
                 rolesClientId, and that our account may see that client"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn descriptions_are_cut_between_characters() {
        assert_eq!(description("Tea User Role"), "Tea User Role");
        assert_eq!(description(&"é".repeat(255)), "é".repeat(255));
        assert_eq!(description(&"é".repeat(256)), "é".repeat(255));
    }

    #[test]
    fn a_role_is_given_by_identifier_and_name() {
        let read = json!({"id": "7", "name": "workspace-tea:user", "composite": false, "description": "x"});
        let role: Role = serde_json::from_value(read).unwrap();
        assert_eq!(role.description, "x");
        let body = to_value(mentioned(&[role])).unwrap();
        assert_eq!(body, json!([{"id": "7", "name": "workspace-tea:user"}]));
    }
}
