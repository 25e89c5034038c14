"""Pages of the documentation site that are made of the code when the site is built; mkdocs.yml names "
"`hooks.py`."""
