//! Tests of several parts: the parser, compared with another parser and with the filter, and the counter.

mod allocations;
mod counting;
mod filtering;
mod parsing;
mod reference;
