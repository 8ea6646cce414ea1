//! The rooms of the house: one folder a control loop.

pub mod instance;
