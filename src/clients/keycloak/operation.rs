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
    /// The mail with which a user takes the actions that are required.
    SendMail,
    /// The deletion of a user.
    DeleteUser,
    /// The client that holds the roles.
    RolesClient,
    /// A role by name.
    FindRole,
    /// A new role.
    CreateRole,
    /// Another description.
    UpdateRole,
    /// The deletion of a role.
    DeleteRole,
    /// The roles that a user has.
    UserRoles,
    /// More roles for a user.
    AddRoles,
    /// Fewer roles for a user.
    RemoveRoles,
}

impl Operation {
    pub(super) fn method(self) -> Method {
        match self {
            Self::FindUser | Self::RolesClient | Self::FindRole | Self::UserRoles => Method::GET,
            Self::Token | Self::CreateUser | Self::CreateRole | Self::AddRoles => Method::POST,
            Self::UpdateUser | Self::SendMail | Self::UpdateRole => Method::PUT,
            Self::DeleteUser | Self::DeleteRole | Self::RemoveRoles => Method::DELETE,
        }
    }

    /// Whether it changes something in the realm.
    pub(super) fn is_change(self) -> bool {
        self.method() != Method::GET && self != Self::Token
    }

    /// What Keycloak answers with 404 where the object does not exist, if that is no error.
    pub(super) fn absent(self) -> Option<&'static str> {
        match self {
            Self::DeleteUser => Some("User not found"),
            Self::FindRole | Self::DeleteRole => Some("Could not find role"),
            _ => None,
        }
    }

    /// The value of the `operation` label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::FindUser => "find_user",
            Self::CreateUser => "create_user",
            Self::UpdateUser => "update_user",
            Self::SendMail => "send_action_mail",
            Self::DeleteUser => "delete_user",
            Self::RolesClient => "roles_client",
            Self::FindRole => "role",
            Self::CreateRole => "create_role",
            Self::UpdateRole => "update_role_description",
            Self::DeleteRole => "delete_role",
            Self::UserRoles => "user_roles",
            Self::AddRoles => "add_roles",
            Self::RemoveRoles => "remove_roles",
        }
    }

    /// The operation, behind "Keycloak cannot".
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Token => "get a token",
            Self::FindUser => "find a user",
            Self::CreateUser => "create a user",
            Self::UpdateUser => "update a user",
            Self::SendMail => "send a mail to a user",
            Self::DeleteUser => "delete a user",
            Self::RolesClient => "find the client that holds the roles",
            Self::FindRole => "find a role",
            Self::CreateRole => "create a role",
            Self::UpdateRole => "update a role",
            Self::DeleteRole => "delete a role",
            Self::UserRoles => "list the roles of a user",
            Self::AddRoles => "give roles to a user",
            Self::RemoveRoles => "take roles from a user",
        }
    }

    /// The role of the client `realm-management` that it takes (docs/keycloak.md).
    pub(super) fn role(self) -> &'static str {
        match self {
            Self::RolesClient | Self::FindRole | Self::CreateRole | Self::UpdateRole | Self::DeleteRole => {
                "manage-clients"
            }
            _ => "manage-users",
        }
    }
}
