"""templates: the examples of RFC 6570, all four levels, and what is no template."""

import pytest
import uritemplate
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.resources.templates import Variable, expand, variable_names
from interlock.vocabulary.errors import InvalidRequest

VARIABLES: dict[str, Variable] = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "empty_keys": {},
    "undef": None,
}

# RFC 6570, section 3.2, in the order of its operators.
EXAMPLES = """
{count} one,two,three | {count*} one,two,three | {/count} /one,two,three | {/count*} /one/two/three
{;count} ;count=one,two,three | {;count*} ;count=one;count=two;count=three | {?count} ?count=one,two,three
{?count*} ?count=one&count=two&count=three | {&count*} &count=one&count=two&count=three
{var} value | {hello} Hello%20World%21 | {half} 50%25 | O{empty}X OX | O{undef}X OX | {x,y} 1024,768
{x,hello,y} 1024,Hello%20World%21,768 | ?{x,empty} ?1024, | ?{x,undef} ?1024 | ?{undef,y} ?768 | {var:3} val
{var:30} value | {list} red,green,blue | {list*} red,green,blue | {keys} semi,%3B,dot,.,comma,%2C
{keys*} semi=%3B,dot=.,comma=%2C
{+var} value | {+hello} Hello%20World! | {+half} 50%25 | {base}index http%3A%2F%2Fexample.com%2Fhome%2Findex
{+base}index http://example.com/home/index | O{+empty}X OX | O{+undef}X OX | {+path}/here /foo/bar/here
here?ref={+path} here?ref=/foo/bar | up{+path}{var}/here up/foo/barvalue/here
{+x,hello,y} 1024,Hello%20World!,768 | {+path,x}/here /foo/bar,1024/here | {+path:6}/here /foo/b/here
{+list} red,green,blue | {+list*} red,green,blue | {+keys} semi,;,dot,.,comma,, | {+keys*} semi=;,dot=.,comma=,
{#var} #value | {#hello} #Hello%20World! | {#half} #50%25 | foo{#empty} foo# | foo{#undef} foo
{#x,hello,y} #1024,Hello%20World!,768 | {#path,x}/here #/foo/bar,1024/here | {#path:6}/here #/foo/b/here
{#list} #red,green,blue | {#list*} #red,green,blue | {#keys} #semi,;,dot,.,comma,, | {#keys*} #semi=;,dot=.,comma=,
{.who} .fred | {.who,who} .fred.fred | {.half,who} .50%25.fred | www{.dom*} www.example.com | X{.var} X.value
X{.empty} X. | X{.undef} X | X{.var:3} X.val | X{.list} X.red,green,blue | X{.list*} X.red.green.blue
X{.keys} X.semi,%3B,dot,.,comma,%2C | X{.keys*} X.semi=%3B.dot=..comma=%2C | X{.empty_keys} X | X{.empty_keys*} X
{/who} /fred | {/who,who} /fred/fred | {/half,who} /50%25/fred | {/who,dub} /fred/me%2Ftoo | {/var} /value
{/var,empty} /value/ | {/var,undef} /value | {/var,x}/here /value/1024/here | {/var:1,var} /v/value
{/list} /red,green,blue | {/list*} /red/green/blue | {/list*,path:4} /red/green/blue/%2Ffoo
{/keys} /semi,%3B,dot,.,comma,%2C | {/keys*} /semi=%3B/dot=./comma=%2C
{;who} ;who=fred | {;half} ;half=50%25 | {;empty} ;empty | {;v,empty,who} ;v=6;empty;who=fred
{;v,undef,who} ;v=6;who=fred | {;x,y} ;x=1024;y=768 | {;x,y,empty} ;x=1024;y=768;empty | {;hello:5} ;hello=Hello
{;list} ;list=red,green,blue | {;list*} ;list=red;list=green;list=blue | {;keys} ;keys=semi,%3B,dot,.,comma,%2C
{;keys*} ;semi=%3B;dot=.;comma=%2C
{?who} ?who=fred | {?half} ?half=50%25 | {?x,y} ?x=1024&y=768 | {?x,y,empty} ?x=1024&y=768&empty=
{?x,y,undef} ?x=1024&y=768 | {?var:3} ?var=val | {?list} ?list=red,green,blue
{?list*} ?list=red&list=green&list=blue | {?keys} ?keys=semi,%3B,dot,.,comma,%2C | {?keys*} ?semi=%3B&dot=.&comma=%2C
{&who} &who=fred | {&half} &half=50%25 | ?fixed=yes{&x} ?fixed=yes&x=1024 | {&x,y,empty} &x=1024&y=768&empty=
{&var:3} &var=val | {&list} &list=red,green,blue | {&list*} &list=red&list=green&list=blue
{&keys} &keys=semi,%3B,dot,.,comma,%2C | {&keys*} &semi=%3B&dot=.&comma=%2C
"""
PAIRS = [tuple(pair.strip().split(" ")) for line in EXAMPLES.strip().splitlines() for pair in line.split(" | ")]


def fill(template: str) -> str:
    return expand(template, {name: VARIABLES[name] for name in variable_names(template)})


@pytest.mark.parametrize(("template", "expected"), PAIRS)
def test_the_examples_of_the_rfc(template: str, expected: str) -> None:
    assert fill(template) == expected


def test_numbers_and_booleans_are_spelled_as_in_json() -> None:
    assert expand("{?a,b,c}", {"a": 0, "b": True, "c": 1.5}) == "?a=0&b=true&c=1.5"


def test_an_escape_that_stands_in_a_reserved_value_is_kept_and_the_rest_is_encoded() -> None:
    assert expand("{+p}", {"p": "a%20b c%"}) == "a%20b%20c%25"
    assert expand("{p}", {"p": "a%20b"}) == "a%2520b"


def test_characters_outside_ascii_are_encoded_in_values_and_literals_and_never_cut() -> None:
    assert expand("{v:2}", {"v": "éàü"}) == "%C3%A9%C3%A0"
    assert expand("dir é/{v}", {"v": "漢"}) == "dir%20%C3%A9/%E6%BC%A2"


def test_a_template_without_variables_is_itself() -> None:
    assert expand("docs://guide?a=%20b#c", {}) == "docs://guide?a=%20b#c"


def test_what_is_not_given_expands_to_nothing() -> None:
    assert expand("a://{x}{?q*}", {"q": []}) == "a://"


def test_variables_are_named_once_in_order_and_hyphens_are_let_through() -> None:
    assert variable_names("a://{x}{?q*,z:3}{x}{user-id}") == ("x", "q", "z", "user-id")


@pytest.mark.parametrize(
    "template", ["{unclosed", "a}b", "{}", "{=x}", "{a b}", "{x:0}", "{x:y}", "{x**}", "{x,}", "{{x}}", "{x:3*}"]
)
def test_what_is_no_template_is_refused(template: str) -> None:
    for use in (lambda: variable_names(template), lambda: expand(template, {})):
        with pytest.raises(InvalidRequest, match="RFC 6570"):
            use()


def test_a_name_that_the_template_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidRequest, match="no variable 'idd'; it has 'id'"):
        expand("a://{id}", {"idd": "1"})


def test_a_prefix_of_a_list_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="prefix"):
        expand("{x:2}", {"x": ["a"]})


@settings(deadline=None, max_examples=200)
@given(
    operator=st.sampled_from(["", "+", "#", ".", "/", ";", "?", "&"]),
    modifier=st.sampled_from(["", "*", ":3"]),
    value=st.text(st.characters(exclude_characters="%", exclude_categories=["Cs"]), max_size=8),
)
def test_plain_values_expand_as_another_implementation_expands_them(operator: str, modifier: str, value: str) -> None:
    template = f"x://{{{operator}name{modifier}}}"
    assert expand(template, {"name": value}) == uritemplate.expand(template, {"name": value})
