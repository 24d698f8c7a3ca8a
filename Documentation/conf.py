# SPDX-License-Identifier: GPL-2.0
"""Settings of Sphinx for the web manual, which "make htmldocs" makes."""

project = "Skua"
# A reference that leads nowhere is a fault
nitpicky = True
# Listings are commands, outputs and drawings: nothing to colour
highlight_language = "none"
smartquotes = False

html_theme = "furo"
html_title = "Skua"
html_static_path = ["_static"]
html_css_files = ["skua.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
