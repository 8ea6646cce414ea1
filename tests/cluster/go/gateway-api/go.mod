// The Gateway API for the tests: its module contains the published CRDs under
// config/crd/standard; no Go code of it is built.
module crownlabs.polito.it/testbed/gateway-api

go 1.26.0

require sigs.k8s.io/gateway-api v1.6.3
