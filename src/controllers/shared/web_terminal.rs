//! The last messages of terminals in the browser: web SSH sends them, and the dashboard says them in the language of its
//! user. Other web clients display them, so they stay as they are, including the misspelling.

/// The shell has ended.
pub const SHELL_ENDED: &str = "SSH session closed";
/// There was no input and no output for the idle time.
pub const IDLE: &str = "Connection timed out due to inactivity";
/// The process is shutting down.
pub const STOPPING: &str = "The server is shutting down";
/// The maximum number of terminals is open.
pub const FULL: &str = "Max connection limit reached";
/// The first message did not arrive in time.
pub const NO_FIRST_MESSAGE: &str = "Failed to read initialization message";
/// The first message cannot be read.
pub const FIRST_FORMAT: &str = "Invalid fist message format";
/// The first message is incomplete.
pub const FIRST_INCOMPLETE: &str = "Missing required fields in the initialization message";
/// The user gets no terminal of this machine.
pub const DENIED: &str = "Invalid request";
/// The user may not use the machine any more.
pub const LOST: &str = "Your access to this machine has ended";
/// The API server does not identify the user or the user's rights.
pub const UNDECIDED: &str = "The server cannot find out what you may open; try again in a minute";
/// The machine is unreachable or rejects the key.
pub const NO_CONNECTION: &str = "Failed to establish SSH connection";
/// The connection to the machine is lost, or the machine has no shell.
pub const INTERNAL: &str = "Internal server error";
/// A later message cannot be read.
pub const FORMAT: &str = "Invalid message format";
