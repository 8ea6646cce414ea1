//! The kinds of requests to Keycloak: their methods, and their names in metrics and sentences.

use http::Method;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new token for the service account.
    Token,
    /// A user by name.
    FindUser,
    /// A new user.
    CreateUser,
    /// Other names or another e-mail address.
    UpdateUser,
    /// The mail with a link to the required actions of a user.
    SendMail,
    /// The deletion of a user.
    DeleteUser,
    /// The client that holds the roles.
    RolesClient,
    /// A role by name.
    FindRole,
    /// A new role.
    CreateRole,
    /// Another description of a role.
    UpdateRole,
    /// The deletion of a role.
    DeleteRole,
    /// The roles that a user has.
    UserRoles,
    /// Additional roles for a user.
    AddRoles,
    /// Fewer roles for a user.
    RemoveRoles,
}

impl Operation {
    /// The method, the name in metrics, and the phrase after "Keycloak cannot".
    pub(super) fn row(self) -> (Method, &'static str, &'static str) {
        match self {
            Self::Token => (Method::POST, "token", "get a token"),
            Self::FindUser => (Method::GET, "find_user", "find a user"),
            Self::CreateUser => (Method::POST, "create_user", "create a user"),
            Self::UpdateUser => (Method::PUT, "update_user", "update a user"),
            Self::SendMail => (Method::PUT, "send_action_mail", "send a mail to a user"),
            Self::DeleteUser => (Method::DELETE, "delete_user", "delete a user"),
            Self::RolesClient => (Method::GET, "roles_client", "find the client that holds the roles"),
            Self::FindRole => (Method::GET, "role", "find a role"),
            Self::CreateRole => (Method::POST, "create_role", "create a role"),
            Self::UpdateRole => (Method::PUT, "update_role_description", "update a role"),
            Self::DeleteRole => (Method::DELETE, "delete_role", "delete a role"),
            Self::UserRoles => (Method::GET, "user_roles", "list the roles of a user"),
            Self::AddRoles => (Method::POST, "add_roles", "give roles to a user"),
            Self::RemoveRoles => (Method::DELETE, "remove_roles", "take roles from a user"),
        }
    }

    /// The phrase after "Keycloak cannot".
    pub(super) fn words(self) -> &'static str {
        self.row().2
    }

    /// Whether the operation changes the realm.
    pub(super) fn is_change(self) -> bool {
        self.row().0 != Method::GET && self != Self::Token
    }

    /// Keycloak's message with 404 if the object does not exist and that is not an error.
    pub(super) fn absent(self) -> Option<&'static str> {
        match self {
            Self::DeleteUser => Some("User not found"),
            Self::FindRole | Self::DeleteRole => Some("Could not find role"),
            _ => None,
        }
    }

    /// The role of the client `realm-management` that the operation requires (docs/keycloak.md).
    pub(super) fn role(self) -> &'static str {
        match self {
            Self::RolesClient | Self::FindRole | Self::CreateRole | Self::UpdateRole | Self::DeleteRole => {
                "manage-clients"
            }
            _ => "manage-users",
        }
    }
}
