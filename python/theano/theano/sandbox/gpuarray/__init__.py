pygpu_activated = False
