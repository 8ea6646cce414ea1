// Package kubevirt names the API packages whose CRDs the test bed generates.
package kubevirt

import (
	_ "kubevirt.io/api/core/v1"
	_ "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)
