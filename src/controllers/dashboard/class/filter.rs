//! The query of the page: the search, the filters, the order, and the page of the table.

use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::texts::template::Key;
use crate::controllers::dashboard::ui::links::queried;

/// The maximum number of characters of a search.
pub const MOST_OF_SEARCH: usize = 100;
/// The value of `state` for people without a machine.
const WITHOUT: &str = "none";

/// The selected part of a class, and its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The words that a row has; empty for all rows.
    pub search: String,
    /// The state of the rows; `None` for any state.
    pub state: Option<State>,
    /// The Template of the machines; empty for any.
    pub template: String,
    /// The order.
    pub sort: Sort,
    /// Whether the order is reversed.
    pub is_descending: bool,
    /// The number of the page, from 0.
    pub page: usize,
}

/// The state of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The machine that needs attention first has this state.
    Machine(Standing),
    /// The person has no machine.
    Without,
    /// The machines of the person are not known.
    Unknown,
}

/// The order of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// By the last and first names.
    #[default]
    Person,
    /// By the title of the machine.
    Machine,
    /// By the state: first the rows that need attention.
    State,
    /// By the last use.
    Used,
    /// By the next deadline.
    Deadline,
}

impl Sort {
    /// All orders.
    const ALL: [Self; 5] = [Self::Person, Self::Machine, Self::State, Self::Used, Self::Deadline];

    /// Returns its name in the query.
    const fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Machine => "machine",
            Self::State => "state",
            Self::Used => "used",
            Self::Deadline => "deadline",
        }
    }
}

impl State {
    /// Returns the states that a filter can select.
    pub fn all() -> impl Iterator<Item = Self> {
        Standing::ALL.iter().copied().map(Self::Machine).chain([Self::Without])
    }

    /// Returns its name in the query, and in the exported table; empty for unknown machines.
    pub fn name(self) -> String {
        match self {
            Self::Machine(standing) => format!("{standing:?}").to_lowercase(),
            Self::Without => WITHOUT.to_owned(),
            Self::Unknown => String::new(),
        }
    }

    /// Returns the place of the state in the order of the rows: first those that need a person.
    pub fn rank(self) -> usize {
        let marks = ["bad", "busy", "good", "quiet"];
        match self {
            Self::Machine(standing) => {
                let place = marks.iter().position(|mark| *mark == standing.mark()).unwrap_or(marks.len());
                if place == 0 { 0 } else { place + 1 }
            }
            Self::Without => 1,
            Self::Unknown => marks.len() + 1,
        }
    }
}

impl Filter {
    /// Reads the query of a page. Invalid values count as absent.
    pub fn of(query: &Fields) -> Self {
        let sort = query.get("sort");
        let (name, is_descending) = sort.strip_prefix('-').map_or((sort, false), |name| (name, true));
        let sort = Sort::ALL.into_iter().find(|sort| sort.name() == name);
        let state = query.get("state");
        let page: usize = query.get("page").parse().unwrap_or_default();
        Self {
            search: query.get("q").trim().chars().take(MOST_OF_SEARCH).collect(),
            state: State::all().find(|known| known.name() == state),
            template: query.get("template").to_owned(),
            sort: sort.unwrap_or_default(),
            is_descending: is_descending && sort.is_some(),
            page: page.saturating_sub(1),
        }
    }

    /// Whether the first rows depend on all machines.
    pub fn needs_all(&self) -> bool {
        let Self { search, state, template, sort, .. } = self;
        *sort != Sort::Person || state.is_some() || !template.is_empty() || !search.is_empty()
    }

    /// Returns the same rows in another order, or in the reverse of this order, from the first page.
    #[must_use]
    pub fn sorted(&self, sort: Sort) -> Self {
        let is_descending = self.sort == sort && !self.is_descending;
        Self { sort, is_descending, page: 0, ..self.clone() }
    }

    /// Returns the path of a page with this query.
    pub fn path(&self, path: &str) -> String {
        queried(path, &Fields(self.fields()).encoded())
    }

    /// Returns the value of `sort`; empty for the default order.
    pub fn order(&self) -> String {
        match (self.sort, self.is_descending) {
            (Sort::Person, false) => String::new(),
            (sort, is_descending) => format!("{}{}", if is_descending { "-" } else { "" }, sort.name()),
        }
    }

    fn fields(&self) -> Vec<(String, String)> {
        let page = if self.page == 0 { String::new() } else { (self.page + 1).to_string() };
        let state = self.state.map(State::name).unwrap_or_default();
        let fields = [
            ("q", self.search.clone()),
            ("state", state),
            ("template", self.template.clone()),
            ("sort", self.order()),
            ("page", page),
        ];
        fields.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn filter(query: &str) -> Filter {
        Filter::of(&Fields::parse(query.as_bytes()))
    }

    #[test]
    fn a_query_is_written_as_it_is_read() {
        for query in [
            "",
            "q=ada+rossi",
            "q=%3C%22&state=failed&template=desktop-24.04&sort=-used&page=3",
            "state=none&sort=machine",
            "sort=-person",
        ] {
            let path =
                if query.is_empty() { "/courses/tea".to_owned() } else { format!("/courses/tea?{query}") };
            assert_eq!(filter(query).path("/courses/tea"), path);
        }
    }

    #[test]
    fn invalid_values_count_as_absent() {
        for query in
            ["page=0", "page=-1", "page=x", "state=unread", "sort=up", "sort=-", "sort=-up", "q=++", "x=y"]
        {
            assert_eq!(filter(query), Filter::default(), "{query}");
        }
        assert_eq!(filter(&format!("q={}", "é".repeat(500))).search.chars().count(), MOST_OF_SEARCH);
    }

    #[test]
    fn the_order_is_reversed_by_the_second_click() {
        let (first, page) = (filter("sort=state&page=2"), |filter: &Filter| filter.path(""));
        assert_eq!(page(&first.sorted(Sort::State)), "?sort=-state");
        assert_eq!(page(&first.sorted(Sort::State).sorted(Sort::State)), "?sort=state");
        assert_eq!(page(&first.sorted(Sort::Person)), "");
    }

    #[test]
    fn only_the_order_by_person_without_a_filter_needs_no_machines() {
        for (query, expected) in [
            ("", false),
            ("page=2", false),
            ("sort=-person", false),
            ("sort=state", true),
            ("state=ready", true),
            ("template=t", true),
            ("q=a", true),
        ] {
            assert_eq!(filter(query).needs_all(), expected, "{query}");
        }
    }

    #[test]
    fn states_that_need_a_person_come_first() {
        let rank = |standing| State::Machine(standing).rank();
        let ranks = [
            rank(Standing::Failed),
            State::Without.rank(),
            rank(Standing::Starting),
            rank(Standing::Ready),
            rank(Standing::Off),
            State::Unknown.rank(),
        ];
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5]);
        let names: BTreeSet<String> = State::all().map(State::name).collect();
        assert_eq!(names.len(), Standing::ALL.len() + 1);
    }
}
