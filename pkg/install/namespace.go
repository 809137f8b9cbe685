// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// goingPoll is the interval at which a terminating namespace is checked.
const goingPoll = time.Second

// outliveNamespace returns when the gateway's namespace is not being deleted. The Service in it is
// deleted early, and every APIService behind it fails then. But the API server lists a namespace's
// contents in all APIServices before it completes the deletion. So this function deletes the
// APIServices first; InstallServing re-creates them.
func (i *Installer) outliveNamespace(ctx context.Context) error {
	logged := false
	err := wait.PollUntilContextCancel(ctx, goingPoll, true, func(ctx context.Context) (bool, error) {
		var namespace corev1.Namespace
		err := i.Client.Get(ctx, client.ObjectKey{Name: i.Hub.Namespace}, &namespace)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil || namespace.DeletionTimestamp.IsZero() {
			return err == nil, err
		}
		if !logged {
			log.FromContext(ctx).Info("The gateway's namespace is being deleted: removing its APIServices, which would block the deletion, and waiting", "namespace", i.Hub.Namespace)
			logged = true
		}
		return false, i.removeAllOurs(ctx, i.Hub.apiServices(i.APIs))
	})
	if err != nil {
		return fmt.Errorf("waiting for the end of namespace %s, which is being deleted: %w", i.Hub.Namespace, err)
	}
	return nil
}
