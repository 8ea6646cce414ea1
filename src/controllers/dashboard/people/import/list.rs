//! The list of people that a teacher has typed or read from a file.

use std::collections::HashSet;

use super::csv;
use crate::api::names::CanonicalName;
use crate::controllers::dashboard::people::person::Person;
use crate::controllers::dashboard::texts::Problem;

/// The maximum number of people in a list. The form of a list is also limited to 64 KiB.
pub const MOST: usize = 1_000;
/// The columns. Only the first one is needed.
pub const COLUMNS: [&str; 5] = ["user", "first", "last", "email", "role"];

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number.
    pub number: usize,
    /// The user name, as it is written.
    pub user: String,
    /// The person, or the problem with the line.
    pub person: Result<Person, Problem>,
}

/// Why a list cannot be read: the problem, and the text that it is about.
pub type Fault = (Problem, String);

/// Reads a list: a line with the names of the columns, and a line for each person.
///
/// # Errors
/// When the columns are wrong, the list is empty, or it is too long.
pub fn read(text: &str) -> Result<Vec<Line>, Fault> {
    let mut lines = csv::lines(text);
    let head = lines.next().ok_or((Problem::ListEmpty, String::new()))?;
    let columns = columns(head.1.ok_or((Problem::ListQuote, String::new()))?)?;
    let (mut users, mut addresses) = (HashSet::new(), HashSet::new());
    let mut read = |(number, fields): csv::Line| {
        let fields = fields.unwrap_or_default();
        let text = |column: &str| {
            let position = columns.iter().position(|known| known == column);
            position.and_then(|position| fields.get(position)).map_or("", String::as_str)
        };
        let mut person = || {
            if fields.is_empty() {
                return Err(Problem::ListQuote);
            }
            if fields.iter().any(|field| field.contains(char::REPLACEMENT_CHARACTER)) {
                return Err(Problem::ListEncoding);
            }
            if fields.len() != columns.len() {
                return Err(Problem::ListFields);
            }
            let [user, first, last, email, role] = COLUMNS.map(text);
            let person = Person::parse(user, first, last, email, role)?;
            // Names with a dot and with a dash would share a namespace.
            if !users.insert(CanonicalName::of(&person.user).to_string()) {
                return Err(Problem::ListTwice);
            }
            if !person.email.is_empty() && !addresses.insert(person.email.to_lowercase()) {
                return Err(Problem::ListEmailTwice);
            }
            Ok(person)
        };
        Line { number, user: text("user").to_owned(), person: person() }
    };
    let people: Vec<Line> = lines.by_ref().take(MOST).map(&mut read).collect();
    match people.len() {
        0 => Err((Problem::ListEmpty, String::new())),
        _ if lines.next().is_some() => Err((Problem::ListLong, String::new())),
        _ => Ok(people),
    }
}

/// Returns the names of the columns of a list.
fn columns(names: Vec<String>) -> Result<Vec<String>, Fault> {
    let names: Vec<String> = names.into_iter().map(|name| name.trim().to_lowercase()).collect();
    let mut seen = HashSet::new();
    let is_wrong = |name: &&String| !COLUMNS.contains(&name.as_str()) || !seen.insert((*name).clone());
    let wrong = names.iter().find(is_wrong).cloned();
    if !names.iter().any(|name| name == COLUMNS[0]) {
        return Err((Problem::ListNoUser, names.join(", ")));
    }
    match wrong {
        Some(name) => Err((Problem::ListColumns, name)),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number, the user name and the role or problem of each line.
    /// A line: its number, the user, and the role or the problem.
    type Found = (usize, String, Result<Option<&'static str>, Problem>);

    fn found(text: &str) -> Vec<Found> {
        let lines = read(text).expect("a list").into_iter();
        lines.map(|line| (line.number, line.user, line.person.map(|person| person.role))).collect()
    }

    #[test]
    fn a_list_has_its_columns_in_any_order_and_only_the_first_one_is_needed() {
        let all = "Role;EMAIL;last;first; user\nmanager;ada@x.org;Rossi;Ada;ada\n";
        let person = Person::parse("ada", "Ada", "Rossi", "ada@x.org", "manager");
        assert_eq!(read(all), Ok(vec![Line { number: 2, user: "ada".to_owned(), person }]));
        assert_eq!(
            found("user\nada\n\nbob"),
            [(2, "ada".to_owned(), Ok(Some("user"))), (4, "bob".to_owned(), Ok(Some("user"))),]
        );
    }

    #[test]
    fn a_list_without_its_columns_or_its_people_is_not_read() {
        let (most, many) = ("\na".repeat(MOST), "\na".repeat(MOST + 1));
        for (text, expected) in [
            ("", (Problem::ListEmpty, "")),
            ("user,role\n \n", (Problem::ListEmpty, "")),
            ("ada,user\nbob,user\n", (Problem::ListColumns, "ada")),
            ("ada\nbob\n", (Problem::ListNoUser, "ada")),
            ("first,last\nAda,Rossi\n", (Problem::ListNoUser, "first, last")),
            ("user,matricola\nada,1\n", (Problem::ListColumns, "matricola")),
            ("user,role,user\nada,user,ada\n", (Problem::ListColumns, "user")),
            ("\"user\nada\n", (Problem::ListQuote, "")),
            (&*format!("user{many}"), (Problem::ListLong, "")),
        ] {
            let expected = Err((expected.0, expected.1.to_owned()));
            assert_eq!(read(text), expected, "{}", &text[..text.len().min(40)]);
        }
        assert_eq!(read(&format!("user{most}")).map(|lines| lines.len()), Ok(MOST));
    }

    #[test]
    fn each_line_has_its_own_problem() {
        let long = "a".repeat(57);
        let text = format!(
            "user,first,last,email,role\n\
             ada,Ada,Rossi,ada@x.org,user\n\
             Bob,Bob,Bianchi,bob@x.org,user\n\
             {long},A,B,a@x.org,user\n\
             carla,Carla,Verdi,carla,user\n\
             dora,Dora,Neri,dora@x.org,teacher\n\
             enzo,Enzo,Gallo,enzo@x.org\n\
             \"fede,Fede,Conti,fede@x.org,user\n\
             ada,Ada,Rossi,other@x.org,user\n\
             gia.na,Gia,Na,gia@x.org,user\n\
             gia-na,Gia,Na,gia2@x.org,user\n\
             hugo,Hugo,Leone,ADA@x.org,user\n\
             ivo,Iv\u{fffd},Moro,ivo@x.org,user\n\
             leo,L\u{202e}eo,Riva,leo@x.org,user\n"
        );
        let problems: Vec<(usize, Option<Problem>)> =
            found(&text).into_iter().map(|(number, _, found)| (number, found.err())).collect();
        let expected = [
            None,
            Some(Problem::PersonUser),
            Some(Problem::PersonUserLong),
            Some(Problem::PersonEmail),
            Some(Problem::PersonRole),
            Some(Problem::ListFields),
            Some(Problem::ListQuote),
            Some(Problem::ListTwice),
            None,
            Some(Problem::ListTwice),
            Some(Problem::ListEmailTwice),
            Some(Problem::ListEncoding),
            Some(Problem::PersonName),
        ];
        assert_eq!(problems, (2..).zip(expected).collect::<Vec<_>>());
    }
}
