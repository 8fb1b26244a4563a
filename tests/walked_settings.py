"""The tables of settings that a test walks row by row, and so demands an answer to each."""

from haclusterd.model.fence_parameters import DEVICE_PARAMETERS
from haclusterd.model.operations import OPERATION_ATTRIBUTES
from haclusterd.model.properties import CLUSTER_PROPERTIES, META_ATTRIBUTES

WALKED = (CLUSTER_PROPERTIES, META_ATTRIBUTES, DEVICE_PARAMETERS, OPERATION_ATTRIBUTES)
"""test_no_silent_option.py has a test for each; tests/house/test_settings.py finds a row that stands in none."""
