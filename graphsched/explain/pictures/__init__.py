"""Pictures of a cluster and of what was decided, as SVG: values in, markup out, nothing to install to look at them."""
