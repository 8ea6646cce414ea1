//! Reads a metric with label matchers in the syntax of `PromQL`, including the verbs of Go's `fmt`.

use super::TemplateError;

/// A label matcher.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Matcher {
    pub label: String,
    /// `=`, `!=`, `=~` or `!~`.
    pub operator: &'static str,
    pub pieces: Vec<Piece>,
}

/// A part of a matcher's value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text, without quotes and escapes. It is never empty, and never adjacent to another text.
    Text(String),
    /// `%s`, `%v` or `%q`.
    Verb,
}

impl Matcher {
    pub(super) fn has_verb(&self) -> bool {
        self.pieces.contains(&Piece::Verb)
    }

    /// The value of a matcher without verbs.
    pub(super) fn text(&self) -> String {
        match self.pieces.as_slice() {
            [Piece::Text(text)] => text.clone(),
            _ => String::new(),
        }
    }
}

/// A character of the query after processing by Go's `fmt`: `%%` is one percent sign.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Char(char),
    Verb(char),
}

/// The metric and the matchers of a query.
pub(super) fn scan(text: &str) -> Result<(String, Vec<Matcher>), TemplateError> {
    let mut scanner = Scanner::of(tokens(text)?);
    scanner.skip_space();
    let metric = scanner.word(':');
    if metric.is_empty() {
        return Err(scanner.unexpected("it does not begin with a metric name"));
    }
    scanner.skip_space();
    if !scanner.take('{') {
        return Err(scanner.unexpected("the metric name is not followed by {"));
    }
    let mut matchers = Vec::new();
    loop {
        scanner.skip_space();
        if scanner.take('}') {
            break;
        }
        matchers.push(scanner.matcher()?);
        scanner.skip_space();
        if !scanner.take(',') && scanner.peek() != Some(Token::Char('}')) {
            return Err(scanner.unexpected("a matcher is not followed by , or }"));
        }
    }
    scanner.skip_space();
    if scanner.peek().is_some() {
        return Err(scanner.unexpected("there is text after the }"));
    }
    Ok((metric, matchers))
}

fn tokens(text: &str) -> Result<Vec<Token>, TemplateError> {
    let mut characters = text.chars();
    let mut tokens = Vec::new();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '%' => match characters.next() {
                Some('%') => Token::Char('%'),
                Some(verb @ ('s' | 'q' | 'v')) => Token::Verb(verb),
                other => return Err(TemplateError::UnknownVerb(other.unwrap_or(' '))),
            },
            other => Token::Char(other),
        });
    }
    Ok(tokens)
}

/// Reads the tokens from the beginning to the end.
pub(super) struct Scanner {
    tokens: Vec<Token>,
    at: usize,
}

impl Scanner {
    fn of(tokens: Vec<Token>) -> Self {
        Self { tokens, at: 0 }
    }

    /// Returns a scanner for a text without verbs, where a percent sign has no special meaning.
    pub(super) fn without_verbs(text: &str) -> Self {
        Self::of(text.chars().map(Token::Char).collect())
    }

    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    /// The next character; `None` at the end, and at a verb.
    pub(super) fn next_char(&self) -> Option<char> {
        match self.peek() {
            Some(Token::Char(next)) => Some(next),
            _ => None,
        }
    }

    pub(super) fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(Token::Char(wanted));
        self.at += usize::from(found);
        found
    }

    pub(super) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(Token::Char(' ' | '\t' | '\n' | '\r'))) {
            self.at += 1;
        }
    }

    /// Returns the error at this position. A verb is reported first, since it is the most likely mistake.
    pub(super) fn unexpected(&self, otherwise: &'static str) -> TemplateError {
        match self.peek() {
            Some(Token::Verb(verb)) => TemplateError::Place(verb),
            _ => TemplateError::NotASelector(otherwise),
        }
    }

    /// Reads a name of letters, digits, underscores and `extra`; returns an empty text if there is none.
    pub(super) fn word(&mut self, extra: char) -> String {
        let mut word = String::new();
        while let Some(Token::Char(next)) = self.peek()
            && (next == '_' || next == extra || next.is_ascii_alphabetic())
                | (next.is_ascii_digit() && !word.is_empty())
        {
            word.push(next);
            self.at += 1;
        }
        word
    }

    fn matcher(&mut self) -> Result<Matcher, TemplateError> {
        let label = self.word('_');
        if label.is_empty() {
            return Err(self.unexpected("a matcher does not begin with a label name"));
        }
        if label == "__name__" {
            return Err(TemplateError::NotASelector("the metric name belongs before the braces"));
        }
        self.constraint(label)
    }

    /// Reads the part of a matcher after its label.
    pub(super) fn constraint(&mut self, label: String) -> Result<Matcher, TemplateError> {
        self.skip_space();
        let operator = if self.take('=') {
            if self.take('~') { "=~" } else { "=" }
        } else if self.take('!') {
            match (self.take('='), self.take('~')) {
                (true, false) => "!=",
                (false, true) => "!~",
                _ => return Err(self.unexpected("a matcher has no operator (=, !=, =~ or !~)")),
            }
        } else {
            return Err(self.unexpected("a matcher has no operator (=, !=, =~ or !~)"));
        };
        self.skip_space();
        Ok(Matcher { label, operator, pieces: self.value()? })
    }

    /// Reads a text in quotes, or `%q`.
    pub(super) fn value(&mut self) -> Result<Vec<Piece>, TemplateError> {
        let quote = match self.peek() {
            Some(Token::Verb('q')) => {
                self.at += 1;
                return Ok(vec![Piece::Verb]);
            }
            Some(Token::Verb(verb)) => return Err(TemplateError::BareVerb(verb)),
            Some(Token::Char(quote @ ('"' | '\'' | '`'))) => quote,
            _ => return Err(TemplateError::NotASelector("the value of a label is not in quotes")),
        };
        self.at += 1;
        let (mut pieces, mut text) = (Vec::new(), String::new());
        loop {
            let token = self.peek().ok_or(TemplateError::NotASelector("a quote is not closed"))?;
            self.at += 1;
            match token {
                Token::Verb('q') => return Err(TemplateError::QuotedVerb),
                Token::Verb(_) => {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(Piece::Verb);
                }
                Token::Char(end) if end == quote => break,
                Token::Char('\\') if quote != '`' => text.push(self.escape()?),
                Token::Char(other) => text.push(other),
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(pieces)
    }

    /// Returns the character that an escape represents. The backslash has already been read.
    fn escape(&mut self) -> Result<char, TemplateError> {
        let escaped = match self.peek() {
            Some(Token::Char(plain @ ('\\' | '"' | '\''))) => plain,
            Some(Token::Char('n')) => '\n',
            Some(Token::Char('r')) => '\r',
            Some(Token::Char('t')) => '\t',
            Some(Token::Char(other)) => return Err(TemplateError::Escape(other)),
            Some(Token::Verb(verb)) => return Err(TemplateError::Place(verb)),
            None => return Err(TemplateError::NotASelector("a quote is not closed")),
        };
        self.at += 1;
        Ok(escaped)
    }
}
