//! Roles: those of one client, and which of them a user has.

use http::Method;
use serde::{Deserialize, Serialize};

use super::{Keycloak, KeycloakError, Operation};

/// What Keycloak answers where there is no role of a name.
const NO_SUCH_ROLE: &str = "Could not find role";
/// Keycloak keeps that many characters of a description.
const LONGEST_DESCRIPTION: usize = 255;

/// A role of the client that holds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Keycloak's identifier.
    pub id: String,
    /// Its name, `workspace-tea:user`.
    pub name: String,
    /// Its description; empty for none.
    #[serde(default, skip_serializing)]
    pub description: String,
}

/// The body that makes or changes a role.
#[derive(Serialize)]
struct RoleText<'a> {
    name: &'a str,
    description: &'a str,
}

/// A client, as far as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Client {
    id: String,
    client_id: String,
}

/// A description as Keycloak keeps it: its beginning if it is too long. To be compared with what
/// [`Role::description`] is.
#[must_use]
pub fn description(text: &str) -> &str {
    match text.char_indices().nth(LONGEST_DESCRIPTION) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

impl Keycloak {
    /// The role of that name, if there is one.
    pub async fn role(&self, name: &str) -> Result<Option<Role>, KeycloakError> {
        let client = self.roles_client().await?;
        let url = self.endpoints().role(&client, name);
        self.forget_roles_client_if_gone(self.find(Operation::FindRole, &url, NO_SUCH_ROLE).await)
    }

    /// Makes a role; [`Conflict`](KeycloakError::Conflict) where there is one of that name.
    pub async fn create_role(&self, name: &str, text: &str) -> Result<(), KeycloakError> {
        let client = self.roles_client().await?;
        let body = RoleText { name, description: description(text) };
        let url = self.endpoints().roles(&client);
        let made = self.write(Operation::CreateRole, Method::POST, &url, &body).await;
        self.forget_roles_client_if_gone(made).map(drop)
    }

    /// Gives a role another description.
    pub async fn update_role_description(&self, name: &str, text: &str) -> Result<(), KeycloakError> {
        let client = self.roles_client().await?;
        let body = RoleText { name, description: description(text) };
        let url = self.endpoints().role(&client, name);
        let updated = self.write(Operation::UpdateRole, Method::PUT, &url, &body).await;
        self.forget_roles_client_if_gone(updated).map(drop)
    }

    /// Deletes a role, and with it what users have of it; success also if there is none.
    pub async fn delete_role(&self, name: &str) -> Result<(), KeycloakError> {
        let client = self.roles_client().await?;
        let url = self.endpoints().role(&client, name);
        self.forget_roles_client_if_gone(self.remove(Operation::DeleteRole, &url, NO_SUCH_ROLE).await)
    }

    /// The roles of our client that a user has been given, those of others not.
    pub async fn user_roles(&self, user: &str) -> Result<Vec<Role>, KeycloakError> {
        let client = self.roles_client().await?;
        let url = self.endpoints().roles_of(user, &client);
        self.forget_roles_client_if_gone(self.read(Operation::UserRoles, &url).await)
    }

    /// Gives roles to a user; those that the user has already stay.
    pub async fn add_roles(&self, user: &str, roles: &[Role]) -> Result<(), KeycloakError> {
        self.map_roles(Operation::AddRoles, Method::POST, user, roles).await
    }

    /// Takes roles from a user; success also for those that the user does not have.
    pub async fn remove_roles(&self, user: &str, roles: &[Role]) -> Result<(), KeycloakError> {
        self.map_roles(Operation::RemoveRoles, Method::DELETE, user, roles).await
    }

    async fn map_roles(
        &self,
        operation: Operation,
        method: Method,
        user: &str,
        roles: &[Role],
    ) -> Result<(), KeycloakError> {
        // A deletion without roles would take all of them.
        if roles.is_empty() {
            return Ok(());
        }
        let client = self.roles_client().await?;
        let url = self.endpoints().roles_of(user, &client);
        self.forget_roles_client_if_gone(self.write(operation, method, &url, roles).await).map(drop)
    }

    /// The identifier of a client.
    pub(super) async fn find_client(&self, client_id: &str) -> Result<String, KeycloakError> {
        let url = self.endpoints().clients_named(client_id);
        let found: Vec<Client> = self.read(Operation::RolesClient, &url).await?;
        let client = found.into_iter().find(|client| client.client_id == client_id);
        client.map(|client| client.id).ok_or_else(|| {
            KeycloakError::NotFound(format!(
                "the Keycloak realm has no client {client_id:?}, which should hold the roles; check \
                 rolesClientId, and that our service account may see that client"
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
        assert_eq!(to_value(&role).unwrap(), json!({"id": "7", "name": "workspace-tea:user"}));
    }
}
