"""Language tags: what of en, en_GB and en-Latn names the language itself."""


def primary_language(tag: str) -> str:
    """The language of a tag in lower case, without script and region: pt of pt_BR, zho of zho-Hans."""
    return tag.casefold().replace("-", "_").partition("_")[0]
