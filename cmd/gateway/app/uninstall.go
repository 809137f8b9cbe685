// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/install"
)

// Uninstall removes what leads the hub to a gateway, and prints a line for each
// object that it removed.
func Uninstall(ctx context.Context, options *UninstallOptions, out io.Writer) error {
	hub, err := loadHub(options.Kubeconfig)
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	direct, err := client.New(hub, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", hub.Host, err)
	}
	uninstaller := &install.Uninstaller{
		Client: direct, Namespace: options.Namespace, Clock: clock.RealClock{},
		Removed: func(kind, name string) { _, _ = fmt.Fprintf(out, "%s/%s removed\n", strings.ToLower(kind), name) },
	}
	if options.Stop != "" {
		if err := uninstaller.Stop(ctx, options.Stop); err != nil {
			return err
		}
	}
	return uninstaller.Uninstall(ctx)
}
