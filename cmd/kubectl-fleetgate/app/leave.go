// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

type leaveOptions struct {
	*session
	Timeout time.Duration
	Wait    bool
}

func newLeaveCommand(s *session) *cobra.Command {
	o := &leaveOptions{session: s}
	command := &cobra.Command{
		Use:   "leave MEMBER",
		Short: "Remove a member from the fleet",
		Long: `Delete the MemberCluster and wait until the agent has left. Placed resources stay on the
member and keep running; to remove them, drain the member first. The Cluster object of the
member remains in the registration namespace and prevents it from joining again. To move
the member to another hub, use "move".`,
		Example: `  kubectl fleetgate leave old-member
  kubectl fleetgate leave older-member --wait=false`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE:              s.onHub(func(ctx context.Context, h *overview.Hub, args []string) error { return o.run(ctx, h, args[0]) }),
	}
	command.Flags().BoolVar(&o.Wait, "wait", true, "Wait until the member has left.")
	command.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to wait until the member has left.")
	return command
}

func (o *leaveOptions) run(ctx context.Context, h *overview.Hub, name string) error {
	member, err := h.Member(ctx, name)
	if err != nil {
		return err
	}
	if err := h.Delete(ctx, member, client.Preconditions{UID: &member.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting MemberCluster %q: %w", name, err)
	}
	if !o.Wait {
		o.printf("member %s is leaving\n", name)
		return nil
	}
	err = o.await(ctx, o.Timeout, func(ctx context.Context) (bool, string, error) {
		now := &clusterv1beta1.MemberCluster{}
		err := h.Get(ctx, client.ObjectKeyFromObject(member), now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != member.UID {
			return true, "", nil
		}
		return false, whyNotLeft(now), err
	})
	if err != nil {
		return err
	}
	o.printf("member %s has left\n", name)
	return nil
}

// whyNotLeft returns what a leaving member waits for.
func whyNotLeft(member *clusterv1beta1.MemberCluster) string {
	if _, silent := member.SilentSince(); silent {
		return fmt.Sprintf("the agent of member %q does not report, so the member cannot leave: start the agent, or annotate the MemberCluster with %s=true if the cluster no longer exists", member.Name, clusterv1beta1.AnnotationGone)
	}
	if c := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionReadyToJoin); c != nil && c.Status != metav1.ConditionTrue {
		return fmt.Sprintf("member %q has not left: %s", member.Name, c.Message)
	}
	return fmt.Sprintf("member %q has not left: its agent has not confirmed yet", member.Name)
}
