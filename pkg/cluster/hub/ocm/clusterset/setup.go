// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// SetupWithManager adds the controllers of sets and their bindings.
func SetupWithManager(mgr ctrl.Manager) error {
	if err := (&Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr); err != nil {
		return err
	}
	return (&BindingReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
}
